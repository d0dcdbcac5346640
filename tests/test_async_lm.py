"""Many tasks, one engine: what they get, and what happens to those that leave or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from soar_dlm import AsyncLM
from soar_dlm.errors import Busy, EngineStopped, PromptTooLong, SettingsError, SoarError
from soar_dlm.lm import LM
from soar_dlm.mailbox import MOST_PENDING
from soar_dlm.results import Event, Result

STRATEGIES = ("greedy", "adaptive", "pbs", "soar", "deliberate", "lopa", "freedave", "klass", "core")
LONG: dict[str, Any] = {"max_new_tokens": 200, "early_exit": False, "trace": False}
LIMIT = 60.0


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, LIMIT))


async def until(true: Callable[[], bool]) -> None:
    """Let others run until something is the case; the limit of :func:`run` ends it if it never is."""
    while not true():
        await asyncio.sleep(0.001)


def same(result: Result, other: Result) -> bool:
    return (result.text, result.token_ids, result.steps) == (other.text, other.token_ids, other.steps)


def test_texts_of_tasks_that_run_together_are_those_of_lm(random_llada: LM) -> None:
    async def work() -> list[Result]:
        async with AsyncLM(random_llada) as lm:
            calls = [lm.generate(f"{name} 1", name, max_new_tokens=12) for name in STRATEGIES]
            return list(await asyncio.gather(*calls))

    for name, result in zip(STRATEGIES, run(work()), strict=True):
        assert same(result, random_llada.generate(f"{name} 1", name, max_new_tokens=12)), name


def test_a_stream_has_the_events_of_lm(random_llada: LM) -> None:
    async def work() -> list[Event]:
        async with AsyncLM(random_llada) as lm:
            return [event async for event in lm.stream("hello", "soar", max_new_tokens=12)]

    events, expected = run(work()), list(random_llada.stream("hello", "soar", max_new_tokens=12))
    assert [(one.text, one.token_ids, one.forwards) for one in events] == [
        (one.text, one.token_ids, one.forwards) for one in expected
    ]


def test_blanks_are_filled_as_lm_fills_them(random_dreamon: LM) -> None:
    async def work() -> tuple[Any, list[Event]]:
        async with AsyncLM(random_dreamon) as lm:
            events = [event async for event in lm.stream_infill("a {blank:3} b {blank:2} c", max_length=6)]
            return await lm.infill("a", "b", length=4, max_length=8), events

    filled, events = run(work())
    assert filled.whole == random_dreamon.infill("a", "b", length=4, max_length=8).whole
    assert events[-1].result is not None
    assert same(events[-1].result, random_dreamon.infill_template("a {blank:3} b {blank:2} c", max_length=6))


def test_n_gives_samples_at_a_temperature_and_finalists_without(random_llada: LM) -> None:
    async def work() -> tuple[list[Result], list[Result]]:
        async with AsyncLM(random_llada) as lm:
            drawn = await lm.generate("a", "greedy", n=3, seed=5, temperature=1.0, max_new_tokens=6)
            return drawn, await lm.generate("a", "pbs", n=2, max_new_tokens=6)

    drawn, finalists = run(work())
    expected = random_llada.generate("a", "greedy", n=3, seed=5, temperature=1.0, max_new_tokens=6)
    assert [one.token_ids for one in drawn] == [one.token_ids for one in expected]
    best = random_llada.generate("a", "pbs", max_new_tokens=6)
    assert [one.text for one in finalists] == [best.text, *(one.text for one in best.alternatives)][:2]


def test_a_cancelled_task_frees_its_rows_and_leaves_its_neighbour_alone(random_llada: LM) -> None:
    async def work() -> Result:
        async with AsyncLM(random_llada) as lm:
            gone = asyncio.ensure_future(lm.generate("a", "greedy", **LONG))
            stays = asyncio.ensure_future(lm.generate("b", "greedy", max_new_tokens=40))
            await until(lambda: lm.live_rows == 2)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            assert lm.live_rows <= 1
            assert lm.counts.cancelled == 1
            return await stays

    assert same(run(work()), random_llada.generate("b", "greedy", max_new_tokens=40))


def test_leaving_a_stream_frees_its_rows(random_llada: LM) -> None:
    async def work() -> None:
        async with AsyncLM(random_llada) as lm:
            async for _ in lm.stream("a", "greedy", **LONG):
                break
            await until(lambda: lm.live_rows == 0)
            assert lm.counts.cancelled == 1

    run(work())


def test_a_task_that_is_cancelled_before_its_request_is_made_makes_none(random_llada: LM) -> None:
    async def work() -> None:
        async with AsyncLM(random_llada) as lm:
            call = asyncio.ensure_future(lm.generate("a", **LONG))
            await asyncio.sleep(0)  # it has begun, and its text is being prepared elsewhere
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await lm.generate("b", max_new_tokens=4)).text is not None
            assert lm.live_rows == 0

    run(work())


def test_a_request_that_fails_raises_its_own_error_to_its_own_caller(random_llada: LM) -> None:
    async def work() -> list[Any]:
        async with AsyncLM(random_llada, max_tokens=64, max_rows=4) as lm:
            calls = [
                lm.generate("a" * 300, max_new_tokens=8),
                lm.generate("a", max_new_tokens=64),
                lm.generate("a", "pbs", n=0),
                lm.generate("a", lm.lm.strategy("pbs", beam=5), max_new_tokens=4),
                lm.generate("a", lm.lm.strategy("pbs", beam=3), cfg_scale=1.0, max_new_tokens=4),
                lm.generate("a", max_new_tokens=4),
            ]
            return list(await asyncio.gather(*calls, return_exceptions=True))

    long, canvas, none, wide, guided, good = run(work())
    assert isinstance(long, PromptTooLong)
    assert "at most 64 are allowed" in str(canvas)
    assert all(isinstance(error, SettingsError) for error in (none, wide, guided))
    assert same(good, random_llada.generate("a", max_new_tokens=4))


def test_a_full_queue_is_told_with_a_guess_of_when_to_come_back(random_llada: LM) -> None:
    async def work() -> None:
        lm = AsyncLM(random_llada, queue=1)
        rows = random_llada.engine_settings.max_rows
        calls = [asyncio.ensure_future(lm.generate("a", "greedy", **LONG)) for _ in range(rows)]
        await until(lambda: lm.live_rows == rows)
        calls.append(asyncio.ensure_future(lm.generate("a", "greedy", **LONG)))
        await until(lambda: lm.waiting == 1)
        with pytest.raises(Busy, match="Try again in") as busy:
            await lm.generate("a", max_new_tokens=4)
        assert busy.value.retry_after >= 1
        await lm.aclose(drain=False)
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(error, EngineStopped) for error in ended)

    run(work())


def test_closing_finishes_what_runs_and_refuses_what_comes(random_llada: LM) -> None:
    async def work() -> Result:
        lm = AsyncLM(random_llada)
        running = asyncio.ensure_future(lm.generate("b", "greedy", max_new_tokens=40))
        await until(lambda: lm.live_rows == 1)
        closing = asyncio.ensure_future(lm.aclose())
        await until(lambda: lm.closing)
        with pytest.raises(EngineStopped, match="shutting down"):
            await lm.generate("c")
        await closing
        await lm.ended()
        return await running

    assert same(run(work()), random_llada.generate("b", "greedy", max_new_tokens=40))


def test_when_the_engine_dies_everybody_is_told_why(random_llada: LM, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        lm = AsyncLM(random_llada)
        calls = [asyncio.ensure_future(lm.generate("a", "greedy", **LONG)) for _ in range(3)]
        await until(lambda: lm.live_rows == 3)

        def broken(*_: Any) -> Any:
            raise RuntimeError("the device is lost")

        monkeypatch.setattr(lm._engine.engine._reader, "read", broken)
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert len({id(error) for error in errors}) == 3, "a traceback belongs to one caller"
        for error in errors:
            assert isinstance(error, EngineStopped)
            assert "the device is lost" in str(error)
        assert lm.dead is not None
        with pytest.raises(EngineStopped):
            await lm.ended()
        with pytest.raises(EngineStopped, match="the device is lost"):
            await lm.generate("b")
        await lm.aclose()

    run(work())


def test_a_slow_reader_gets_fewer_events_and_all_records(random_llada: LM) -> None:
    async def work() -> list[Event]:
        async with AsyncLM(random_llada) as lm:
            stream = lm.stream("a", "pbs", **{**LONG, "trace": True})
            events = [await anext(stream)]
            await until(lambda: lm.counts.finished == 1)
            return [*events, *[event async for event in stream]]

    events = run(work())
    assert len(events) <= MOST_PENDING + 2
    records = [record for event in events for record in (*event.missed, event.record)]
    result = events[-1].result
    assert result is not None
    assert records == list(result.trace.steps)
    assert sum(record.forwards for record in records) == events[-1].forwards == result.forwards


def test_an_error_in_a_stream_is_raised_from_it(random_llada: LM) -> None:
    async def work() -> None:
        async with AsyncLM(random_llada) as lm:
            with pytest.raises(SoarError, match="context"):
                [event async for event in lm.stream("a", max_new_tokens=100_000)]

    run(work())
