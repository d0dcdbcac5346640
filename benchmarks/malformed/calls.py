"""The part ``api``: wrong arguments to everything that is public."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import soar_dlm as soar
from benchmarks.malformed.chooser import Chooser
from benchmarks.malformed.room import MODEL, Case, Room
from soar_dlm.errors import shown
from soar_dlm.models.defaults import DecodingDefaults
from soar_dlm.models.loading import LoadOptions
from soar_dlm.search.catalogue import as_strategy, as_table
from soar_dlm.search.metrics import get_metric
from soar_dlm.search.sampling import Sampling

NAMES = tuple(soar.STRATEGIES.names())
DATACLASSES: tuple[Any, ...] = (
    *(soar.Greedy, soar.AdaptiveParallel, soar.PositionBeam, soar.Soar, soar.Deliberate, soar.Factor, soar.Frechet),
    *(soar.EntropyBound, soar.Klass, soar.Lopa, soar.FreeDave, soar.Core, soar.Options, soar.GenerateOptions),
    *(soar.InfillOptions, soar.EngineSettings, soar.Metric, soar.Request, Sampling, DecodingDefaults),
)
GENERATE = tuple(entry.name for entry in fields(soar.GenerateOptions))
INFILL = tuple(entry.name for entry in fields(soar.InfillOptions))
DECODE = tuple(entry.name for entry in fields(soar.Options))
PROMPTS: tuple[Any, ...] = ("a", ["a", "b"], [{"role": "user", "content": "x"}], "")
TEMPLATES: tuple[Any, ...] = ("a {blank:2} b", ["{blank:2}"], "a{blank}b")


def consumed(result: Any) -> Any:
    """Run an iterator to its end: a generator does nothing until it is asked."""
    if isinstance(result, Iterable) and hasattr(result, "__next__"):
        for entry in result:
            if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], Exception):
                raise entry[1]
    return result


def some(choose: Chooser, names: tuple[str, ...], most: int = 2) -> dict[str, Any]:
    return {choose.pick(names): choose.value() for _ in range(choose.number(0, most))}


def sometimes(choose: Chooser, valid: Any) -> Any:
    """A valid value, or any other."""
    return choose.value() if choose.number(0, 2) == 0 else valid


def api(choose: Chooser, room: Room) -> Case:
    name, make = choose.pick(KINDS)
    target, args, keywords = make(choose, room)
    given = ", ".join([*map(shown, args), *(f"{key}={shown(value)}" for key, value in keywords.items())])
    return Case(
        f"{name}: {getattr(target, '__qualname__', target)}({given})", lambda: consumed(target(*args, **keywords))
    )


Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def _made(choose: Chooser, room: Room) -> Call:
    kind = choose.pick(DATACLASSES)
    names = tuple(entry.name for entry in fields(kind))
    args = (choose.value(),) if choose.number(0, 9) == 0 else ()
    return kind, args, some(choose, (*names, "nonsense") if choose.number(0, 9) == 0 else names, 3)


def _named(choose: Chooser, room: Room) -> Call:
    settings = ("beam", "threshold", "metric", "tokens_per_step", "released", "drafts", "draft", "name", "defer_end")
    target = choose.pick((soar.make_strategy, room.lm.strategy))
    return target, (sometimes(choose, choose.pick(NAMES)),), some(choose, settings)


def _looked_up(choose: Chooser, room: Room) -> Call:
    target = choose.pick(
        (get_metric, as_strategy, as_table, soar.METRICS.get, soar.STRATEGIES.get, soar.make_task, soar.TASKS.get)
    )
    return target, (choose.value(),), {}


def _tasks(choose: Chooser, room: Room) -> Call:
    task = soar.make_task("mini-sums")

    def first(*given: Any) -> Any:
        return next(task.problems(*given))

    valid: dict[Any, tuple[Any, ...]] = {
        soar.make_task: ("gsm8k", room.folder),
        task.distinct: ("test", 3, 0),
        first: ("validation", 0),
    }
    target = choose.pick(list(valid))
    return target, tuple(sometimes(choose, one) for one in valid[target]), {}


def _registered(choose: Chooser, room: Room) -> Call:
    from soar_dlm.registry import Registry

    registry: Registry[Any] = Registry("thing", "soar_dlm.none", {"sum": "builtins:sum", "bad": "no_such:thing"})
    return choose.pick((registry.register, lambda name, _: registry.get(name))), (choose.value(), choose.value()), {}


def _generate(choose: Chooser, room: Room) -> Call:
    lm = choose.pick((room.lm, room.dreamon))
    target = choose.pick((lm.generate, lm.stream, lm.generate_as_completed))
    prompt = sometimes(choose, choose.pick(PROMPTS))
    args = (prompt, choose.value()) if choose.number(0, 4) == 0 else (prompt,)
    extra = ("n", "progress", "nonsense") if choose.number(0, 4) == 0 else ()
    return target, args, {"max_new_tokens": 2, **some(choose, (*GENERATE, *extra), 3)}


def _infill(choose: Chooser, room: Room) -> Call:
    lm = choose.pick((room.lm, room.dreamon))
    target = choose.pick((lm.infill, lm.infill_template, lm.stream_infill, lm.infill_as_completed))
    valid: tuple[Any, ...] = ("a", "b") if target == lm.infill else (choose.pick(TEMPLATES),)
    args = tuple(sometimes(choose, one) for one in valid)
    return target, args, {"length": 2, "max_length": 4, **some(choose, INFILL, 3)}


def _decode(choose: Chooser, room: Room) -> Call:
    mask = room.lm.mask_token_id
    keywords: dict[str, Any] = some(choose, DECODE)
    if choose.number(0, 1):
        keywords["fill"] = sometimes(choose, [[1]])
    return room.lm.decode, (sometimes(choose, [[5, mask]]),), keywords


def _texts(choose: Chooser, room: Room) -> Call:
    target = choose.pick((room.lm.encode, room.lm.pieces, room.lm.text_of, soar.Trace.from_json))
    return target, tuple(choose.value() for _ in range(choose.number(1, 2))), {}


def templates(choose: Chooser, room: Room) -> Case:
    """The part ``templates``: texts whose blanks are malformed."""
    valid: dict[Any, tuple[Any, ...]] = {
        soar.Template: (("a", "b"), (2,)),
        soar.Template.parse: ("a {blank} b", 4, "<fill>"),
        soar.Template.between: ("a", "b", 2),
    }
    target = choose.pick(list(valid))
    args = tuple(sometimes(choose, one) for one in valid[target])
    called = getattr(target, "__qualname__", target)
    return Case(f"{called}({', '.join(map(shown, args))})", lambda: target(*args))


def _engine(choose: Chooser, room: Room) -> Call:
    decode = choose.pick((None, lambda ids: "x"))

    def added(tokens: Any, fill: Any, stop: Any, length: Any, settings: Any) -> None:
        engine = soar.Engine(room.lm.model, settings, decode=decode)
        engine.add(soar.Request(tokens, fill, soar.Greedy(), stop=stop, max_length=length))
        for event in engine.run():
            if event.error is not None:
                raise event.error

    def direct(request: Any) -> None:
        engine = room.lm.engine()
        engine.cancel(request)
        for event in engine.run(request):
            if event.error is not None:
                raise event.error

    if choose.number(0, 2) == 0:
        return choose.pick((direct, room.lm.engine().add, soar.Engine)), (choose.value(),), {}
    valid = ([5, room.lm.mask_token_id], [1], (), None, None)
    return added, tuple(sometimes(choose, one) for one in valid), {}


def _load(choose: Chooser, room: Room) -> Call:
    names = (*sorted(LoadOptions.__optional_keys__ - {"token", "cache_dir"}), "device", "dtype", "engine", "nonsense")
    keywords = {"device": "cpu", **some(choose, names)}
    return soar.load, (sometimes(choose, MODEL),), keywords


KINDS: tuple[tuple[str, Callable[[Chooser, Room], Call]], ...] = (
    *(("dataclass", _made),) * 4,
    *(("strategy", _named), ("table", _looked_up), ("registry", _registered), ("decode", _decode)),
    ("task", _tasks),
    *(("generate", _generate),) * 3,
    *(("infill", _infill),) * 2,
    *(("text", _texts), ("engine", _engine), ("load", _load)),
)
