from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import soar_dlm
from soar_dlm import errors
from soar_dlm.errors import DuplicateName, MissingExtra, SettingsError, SoarError, UnknownName
from soar_dlm.registry import Registry

PUBLIC = {
    "__version__",
    "AdaptiveParallel",
    "Answer",
    "AsyncLM",
    "Candidate",
    "Commit",
    "Core",
    "Deliberate",
    "Engine",
    "EngineSettings",
    "EntropyBound",
    "Event",
    "Factor",
    "Frechet",
    "FreeDave",
    "GenerateOptions",
    "Greedy",
    "Infilling",
    "InfillOptions",
    "Klass",
    "LM",
    "load",
    "Lopa",
    "make_strategy",
    "make_task",
    "Metric",
    "METRICS",
    "Options",
    "Place",
    "Pool",
    "PositionBeam",
    "Problem",
    "Proposal",
    "Question",
    "Reading",
    "Request",
    "Result",
    "Soar",
    "SoarError",
    "Start",
    "STRATEGIES",
    "Strategy",
    "Task",
    "TASKS",
    "Template",
    "Trace",
    "Wanted",
}


def test_the_public_surface_is_what_it_says() -> None:
    assert set(soar_dlm.__all__) == PUBLIC
    assert set(dir(soar_dlm)) >= PUBLIC
    for name in PUBLIC:
        assert getattr(soar_dlm, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = soar_dlm.nothing


def test_importing_the_package_is_light() -> None:
    code = (
        "import soar_dlm, sys; assert 'torch' not in sys.modules;"
        "soar_dlm.Greedy; assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_error_is_a_soar_error_and_survives_pickling() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, SoarError) for kind in kinds)
    assert all(kind.__name__ in (errors.__doc__ or "") for kind in kinds), "the tree at the top of the file is complete"
    for error in (UnknownName("metric", "x", ["a"]), MissingExtra("ray", "scale", "Scaling"), SettingsError("no")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_registries_refuse_duplicates_and_suggest_names() -> None:
    registry: Registry[object] = Registry("thing", "soar_dlm.nothing", {"sum": "builtins:sum"})
    assert registry.get("sum") is sum
    registry.register("max", max)
    assert registry.get("max") is max
    assert registry.names() == ["max", "sum"]
    with pytest.raises(DuplicateName, match="'max' is taken; register yours under another name"):
        registry.register("max", min)
    with pytest.raises(UnknownName, match=r"There is no thing 'maxx'\. Did you mean 'max'"):
        registry.get("maxx")
    with pytest.raises(UnknownName, match="Choose from: max, sum"):
        registry.get("q")


def test_a_conflicting_or_broken_plugin_blocks_only_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevents one badly named plugin from disabling every strategy."""
    from importlib.metadata import EntryPoint

    plugins = [
        EntryPoint("sum", "builtins:max", "g"),
        EntryPoint("bad", "no_such_module:x", "g"),
        EntryPoint("min", "builtins:min", "g"),
    ]
    monkeypatch.setattr("soar_dlm.registry.entry_points", lambda group: plugins)
    registry: Registry[object] = Registry("thing", "g", {"sum": "builtins:sum", "any": "builtins:any"})
    assert registry.names() == ["any", "bad", "min", "sum"]
    assert registry.get("any") is any
    assert registry.get("min") is min
    with pytest.raises(DuplicateName, match="'sum' is taken; the package that adds it"):
        registry.get("sum")
    with pytest.raises(SettingsError, match="'bad' is installed but cannot be imported"):
        registry.get("bad")


def test_a_strategy_registered_by_a_program_must_be_one() -> None:
    soar_dlm.STRATEGIES.register("not-a-strategy", dict)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="subclass"):
        soar_dlm.make_strategy("not-a-strategy")
