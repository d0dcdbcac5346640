"""Running out of memory halves the rows of a forward; only a row that does not fit alone ends its request."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.memory import OutOfRoom, is_out_of_memory, out_of_room
from soar_dlm.engine.request import Request, StepEvent
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import OutOfMemory, UnexpectedError
from soar_dlm.models.masked_lm import Rows
from soar_dlm.options import Options
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from tests.crafted import CraftedLM, canvas_request, decode, random_lm

ERRORS: dict[str, Callable[[], Exception]] = {
    "CUDA": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "CPU": lambda: RuntimeError("[enforce fail at alloc_cpu.cpp:113] . DefaultCPUAllocator: can't allocate memory"),
    "Windows CPU": lambda: RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
    "MPS": lambda: RuntimeError("MPS backend out of memory (MPS allocated: 9.05 GB)"),
    "Python": MemoryError,
}


class SmallMemory(CraftedLM):
    """A random model that runs out of memory above ``rows`` rows, or above ``tokens`` rows times length."""

    def __init__(self, seed: int, rows: int = 99, tokens: int = 9999, error: str = "CUDA") -> None:
        super().__init__(random_lm(seed).rule, 9)
        self.rows, self.tokens, self.error = rows, tokens, error
        self.failures, self.padding = 0, list[list[int] | None]()

    def hidden(self, rows: Rows) -> Tensor:
        if len(rows.ids) > self.rows or rows.ids.numel() > self.tokens:
            self.failures += 1
            raise ERRORS[self.error]()
        self.padding.append(None if rows.padding is None else rows.padding.tolist())
        return super().hidden(rows)


def requests(model: CraftedLM, options: Options | None = None) -> list[Request]:
    return [canvas_request(model, [place] * (place + 1), 4, PositionBeam(beam=2), options) for place in range(5)]


def outcomes(engine: Engine, asked: list[Request]) -> list[StepEvent]:
    found = {event.ticket: event for event in engine.run(asked) if event.final}
    return [found[ticket] for ticket in sorted(found)]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("guided", [False, True])
def test_decoding_continues_with_fewer_rows_and_the_same_texts(error: str, most: int, guided: bool) -> None:
    options = Options(cfg_scale=1.0 if guided else 0.0, early_exit=False)
    ample, small = random_lm(7), SmallMemory(7, rows=most, error=error)
    expected = [decoding.tokens for decoding in decode(ample, requests(ample, options))]
    found = outcomes(Engine(small, EngineSettings(max_rows=64)), requests(small, options))
    assert [event.decoding.tokens if event.decoding is not None else None for event in found] == expected
    assert small.failures > 0
    assert max(len(ids) for ids in small.seen) <= most


def test_a_size_that_did_not_fit_is_not_tried_again() -> None:
    small = SmallMemory(7, rows=2)
    asked = [canvas_request(small, [1, place], 4, Greedy()) for place in range(6)]
    outcomes(Engine(small, EngineSettings(max_rows=64)), asked)
    assert small.failures == 2, "six rows, three, and no failure after that"


def test_memory_may_run_short_in_the_middle_of_a_step() -> None:
    class Fragmented(CraftedLM):
        def hidden(self, rows: Rows) -> Tensor:
            if len(self.seen) == 4 and len(rows.ids) > 1:
                raise ERRORS["CUDA"]()
            return super().hidden(rows)

    ample = random_lm(7)
    small = Fragmented(ample.rule, 9)
    asked = [canvas_request(small, [1], 4, PositionBeam(beam=6))]
    found = outcomes(Engine(small, EngineSettings(max_rows=2)), asked)
    assert found[0].decoding is not None
    assert found[0].decoding.tokens == decode(ample, asked)[0].tokens
    assert [len(ids) for ids in small.seen[:6]] == [1, 2, 2, 2, 1, 1]


def test_rows_that_run_apart_keep_only_the_padding_they_need() -> None:
    small = SmallMemory(7, rows=2)
    engine = Engine(small)
    for length in (3, 3, 2, 1):
        engine.add(canvas_request(small, [1] * length, 1, Greedy()))
    engine.step()
    assert [tuple(ids.shape) for ids in small.seen] == [(2, 4), (2, 3)]
    assert small.padding == [None, [0, 1]]


def test_only_the_request_whose_row_does_not_fit_alone_ends() -> None:
    small = SmallMemory(7, tokens=12)
    fits, too_long = canvas_request(small, [1], 4, Greedy()), canvas_request(small, [2] * 10, 4, Greedy())
    found = outcomes(Engine(small), [fits, too_long, fits])
    assert [type(event.error) for event in found] == [type(None), OutOfMemory, type(None)]
    assert "A row of 14 tokens does not fit into memory, not even alone (CUDA out of memory." in str(found[1].error)
    expected = decode(random_lm(7), [canvas_request(small, [1], 4, Greedy())])[0]
    for event in (found[0], found[2]):
        assert event.decoding is not None
        assert event.decoding.tokens == expected.tokens


def test_a_long_message_is_told_by_its_first_line_on_any_device() -> None:
    with pytest.raises(OutOfRoom, match=r"^no room$"), out_of_room(torch.device("meta")):
        raise MemoryError(" no room\n at allocator.cpp:113")


def test_an_error_without_a_message_is_called_by_its_type() -> None:
    small = SmallMemory(7, rows=0, error="Python")
    found = outcomes(Engine(small), [canvas_request(small, [1], 4, Greedy())])
    assert "not even alone (MemoryError)" in str(found[0].error)


def test_cached_memory_is_given_back_before_trying_again(monkeypatch: pytest.MonkeyPatch) -> None:
    small = SmallMemory(7, rows=2)
    failures: list[int] = []
    monkeypatch.setattr(torch.cpu, "empty_cache", lambda: failures.append(small.failures), raising=False)
    outcomes(Engine(small), [canvas_request(small, [1], 4, Greedy()) for _ in range(6)])
    assert failures == [1, 2]


def test_nothing_fits() -> None:
    small = SmallMemory(7, rows=0)
    found = outcomes(Engine(small), [canvas_request(small, [1], 4, Greedy()) for _ in range(3)])
    assert [type(event.error) for event in found] == [OutOfMemory] * 3


class SmallHead(CraftedLM):
    """A random model whose head runs out of memory above ``most`` positions at a time."""

    def __init__(self, seed: int, most: int) -> None:
        super().__init__(random_lm(seed).rule, 9)
        self.most, self.sizes = most, list[int]()

    def head(self, hidden: Tensor, out: Tensor) -> None:
        if len(hidden) > self.most:
            raise ERRORS["CUDA"]()
        self.sizes.append(len(hidden))
        super().head(hidden, out)


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_head_that_does_not_fit_reads_fewer_positions_at_a_time(most: int) -> None:
    small = SmallHead(7, most)
    ample = random_lm(7)
    found = outcomes(Engine(small, EngineSettings(head_budget=4 * 9 * 4 * 64)), requests(small))
    assert [event.decoding.tokens if event.decoding is not None else None for event in found] == [
        decoding.tokens for decoding in decode(ample, requests(ample))
    ]
    assert most / 2 < max(small.sizes) <= most, "no smaller than need be"


def test_a_head_reads_fewer_positions_while_any_request_still_reads_several() -> None:
    """Sampling reads one position at a time long before the others do."""
    small, ample = SmallHead(7, 1), random_lm(7)
    sampled = Options(temperature=1.0, top_p=0.9, early_exit=False)
    asked = [canvas_request(small, [1], 4, Greedy()), canvas_request(small, [2], 4, Greedy(), sampled)]
    found = outcomes(Engine(small, EngineSettings(head_budget=4 * 9 * 13)), asked)
    expected = [decoding.tokens for decoding in decode(ample, asked)]
    assert [event.decoding.tokens if event.decoding is not None else None for event in found] == expected


def test_a_head_that_does_not_fit_at_all_is_told() -> None:
    small = SmallHead(7, 0)
    found = outcomes(Engine(small), requests(small))
    assert all(isinstance(event.error, OutOfMemory) for event in found)
    assert "The logits of a single position do not fit into memory (CUDA out of memory." in str(found[0].error)


def test_other_errors_of_the_model_are_not_taken_for_memory() -> None:
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))

    def rule(tokens: list[int], position: int) -> list[float]:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(UnexpectedError, match="shapes do not fit"):
        decode(CraftedLM(rule, 9), [Request([1, 8], [1], Greedy())])
