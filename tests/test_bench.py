"""``soar bench``: plain loops that write what the engine writes, turns, the clock, reports and the command."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from soar_dlm.bench import memory
from soar_dlm.bench.clock import Clock, ClockedLM
from soar_dlm.bench.entrants import ByHand, Decoder, Entrant, by_hand, decoders
from soar_dlm.bench.plain import Written, can_run_plainly, plain
from soar_dlm.bench.plan import Plan
from soar_dlm.bench.race import Lane, Measured, race, reference
from soar_dlm.bench.report import Report, spread
from soar_dlm.bench.shape import Shape, random_checkpoint, random_model
from soar_dlm.bench.workload import Workload, random_prompts, task_prompts
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import PromptTooLong, SettingsError, SoarError, UnknownName
from soar_dlm.evals.provenance import machine_line
from soar_dlm.lm import LM, load
from soar_dlm.models.masked_lm import MaskedLM
from soar_dlm.plots.bench import bench_picture
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.klass import Klass
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.mini_infill import MiniInfill
from soar_dlm.tasks.mini_sums import MiniSums
from tests.command import invoke
from tests.crafted import random_lm

TEXT = "hidden=32,layers=2,heads=4,inner=64,vocab=300,context=256"
TINY = ["bench", "--shape", TEXT, "--device", "cpu", "--prompt", "6", "-n", "6", "--repeats", "1"]
STRATEGIES: Mapping[str, Strategy] = {"greedy": Greedy(), "soar": Soar(threshold=0.4), "pbs": PositionBeam(beam=3)}


@pytest.fixture(scope="module")
def model() -> Any:
    return random_model(Shape.read(TEXT), 0, "cpu")


@pytest.fixture(scope="module")
def dream() -> Any:
    return load("random-dream", "cpu").model


def texts(written: Sequence[Written]) -> list[tuple[int, ...]]:
    return [one.tokens for one in written]


@pytest.mark.parametrize("length", [1, 9])
@pytest.mark.parametrize("block", [None, 4, 12])
@pytest.mark.parametrize("name", ["model", "dream"])
def test_plain_loops_write_what_the_engine_writes(
    name: str, block: int | None, length: int, request: pytest.FixtureRequest
) -> None:
    running = request.getfixturevalue(name)
    work = Workload(random_prompts(running.facts, 2, length, False, 3), 10, block)
    for loop in by_hand(STRATEGIES, ["none", "dual"], EngineSettings()):
        assert loop.twin is not None
        own, twin = loop.decode(running, work), loop.twin.decode(running, work)
        assert texts(own) == texts(twin), loop.name
        assert [(one.written, one.forwards) for one in own] == [(one.written, one.forwards) for one in twin]


def test_texts_of_these_models_depend_on_the_order_and_on_the_cache(model: Any, dream: Any) -> None:
    """Else it would mean little that two loops write the same."""
    for running in (model, dream):
        work = Workload(random_prompts(running.facts, 4, 9, False, 3), 10, 5)
        ways = [Decoder("", Greedy()), Decoder("", Greedy(tokens_per_step=3)), Decoder("", Greedy(), {"cache": "dual"})]
        found = [texts(way.decode(running, work)) for way in ways]
        assert found[0] != found[1]
        assert found[0] != found[2]


def test_beams_over_probabilities_have_a_plain_loop() -> None:
    assert [one.name for one in by_hand({**STRATEGIES, "klass": Klass()}, ["none"], EngineSettings())] == [
        "plain",
        "plain-soar",
        "plain-pbs",
    ]
    assert [one.name for one in by_hand({"soar": Soar()}, ["dual"], EngineSettings())] == ["plain-soar"]
    assert [one.name for one in by_hand({"klass": Klass()}, ["dual"], EngineSettings())] == ["plain", "plain-dual"]
    assert can_run_plainly(AdaptiveParallel())
    assert not can_run_plainly(Soar(metric="margin"))


def test_a_loop_that_writes_something_else_makes_the_comparison_void(model: Any) -> None:
    work = Workload(random_prompts(model.facts, 1, 4, False, 0), 8)
    (own,) = ByHand("plain", lambda _: plain).decode(model, work.cut(4))
    other = Decoder("greedy", Greedy(), {"suppress_tokens": [own.tokens[-1]]})
    with pytest.raises(SettingsError, match=r"plain and greedy should write the same tokens .* comparison is void"):
        race(model, [Lane(ByHand("plain", lambda _: plain, other), work)], 1)


class Late(ByHand):
    """Goes wrong only after the warm-up."""

    def decode(self, model: Any, workload: Workload, clock: Clock | None = None) -> list[Written]:
        found = super().decode(model, workload, clock)
        return [Written((*one.tokens[:-1], 0), 1, 1) for one in found] if workload.canvas > 4 else found


def test_whole_texts_are_compared_too(model: Any) -> None:
    twin = Decoder("greedy", Greedy())
    work = Workload(random_prompts(model.facts, 1, 4, False, 0), 8)
    with pytest.raises(SettingsError, match="comparison is void"):
        race(model, [Lane(twin, work), Lane(Late("late", lambda _: plain, twin), work)], 1)


def test_models_without_stored_keys_have_no_plain_dual_loop() -> None:
    running = random_lm(0)
    work = Workload([((1, 2), ())], 4)
    (_, dual) = by_hand({}, ["dual"], EngineSettings())
    with pytest.raises(SettingsError, match="leave dual out of --caches"):
        dual.decode(running, work)


def test_what_does_not_fit_into_the_budget_is_not_timed_as_if_it_did(model: Any) -> None:
    work = Workload(random_prompts(model.facts, 1, 4, False, 0), 4)
    with pytest.raises(SettingsError, match="does not fit into the engine's budget"):
        Decoder("d", Greedy(), {"cache": "dual"}, EngineSettings(cache_budget=1)).decode(model, work)


def test_time_inside_a_part_counts_for_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr("soar_dlm.bench.clock.time.perf_counter", lambda: float(next(ticks)))
    clock = Clock(torch.device("cpu"))
    with clock.during("search"), clock.during("head"), clock.during("search"):
        pass
    assert clock.seconds == {"backbone": 0.0, "head": 2.0, "search": 3.0}


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
def test_a_clock_changes_nothing_and_counts_every_row(model: Any, cache: str, alone: bool) -> None:
    work = Workload(random_prompts(model.facts, 3, 8, True, 0), 6, 4)
    entrant = decoders({"pbs": PositionBeam()}, [cache], {}, EngineSettings(), alone=True)[alone]
    clock = Clock(model.device)
    timed = entrant.decode(model, work, clock)
    assert texts(timed) == texts(entrant.decode(model, work))
    assert clock.rows == sum(one.forwards for one in timed)
    assert (clock.runs >= 3 * 6) if alone else (clock.runs < clock.rows)
    assert all(seconds > 0 for seconds in clock.seconds.values())


def test_a_clocked_model_is_the_model(model: Any) -> None:
    clocked: MaskedLM = ClockedLM(model, Clock(model.device))
    seen: Any = clocked
    assert (seen.facts, seen.device, seen.column_bytes) == (model.facts, model.device, model.column_bytes)
    assert seen.needed(np.array([3])).tolist() == [3]
    assert ClockedLM(random_lm(0), Clock(torch.device("cpu"))).column_bytes is None


class Fixed(Entrant):
    """Writes two tokens and nothing else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def decode(self, model: Any, workload: Workload, clock: Clock | None = None) -> list[Written]:
        if clock is not None:
            clock.count(1)
        return [Written((1, 2), 2, 4)]


def test_everyone_has_a_turn_in_each_round_in_another_order(model: Any) -> None:
    work = Workload([((1,), ())], 8)
    said: list[str] = []
    found = race(model, [Lane(Fixed(name), work) for name in "abc"], 3, said.append)
    assert [len(one.seconds) for one in found] == [3, 3, 3]
    turns = [text.partition(": ")[2] for text in said if text.startswith("round")]
    assert turns == [*"abc", *"bca", *"cab"]
    assert said[:3] == ["warming up: a", "warming up: b", "warming up: c"]
    with pytest.raises(SettingsError, match="repeats"):
        race(model, [Lane(Fixed("a"), work)], 0)


def lane(name: str, seconds: Sequence[float], value: int | None = None, tokens: int = 8) -> Measured:
    own = Measured(Lane(Fixed(name), Workload([((1,), ())], 8), value), list(seconds), [], tokens, 4, 2, 4)
    own.parts, own.clocked = {"backbone": 2.0, "head": 1.0, "search": 0.5}, 4.0
    return own


def test_ratios_are_between_turns_of_the_same_round() -> None:
    slow, fast = lane("slow", [8.0, 4.0, 2.0]), lane("fast", [2.0, 2.0, 2.0])
    assert fast.ratios(slow) == [4.0, 2.0, 1.0]
    assert lane("twice", [4.0], tokens=16).ratios(lane("one", [2.0])) == [1.0]
    assert (fast.tokens_per_second, fast.tokens_per_forward, fast.rows_per_run) == (4.0, 2.0, 2.0)
    assert fast.shares == {"backbone": 0.5, "head": 0.25, "search": 0.125, "host": 0.125}
    assert reference([slow, fast])[None] is slow
    assert reference([slow, fast], "fast")[None] is fast
    with pytest.raises(UnknownName, match="fast"):
        reference([slow, fast], "fats")


def test_a_report_says_what_was_measured_and_where() -> None:
    made = Report([lane("slow", [8.0, 4.0, 2.0]), lane("fast", [2.0, 2.0, 2.0])], {"model": "m", "canvas": 8})
    head, _, slow, fast, _, what, where, how = made.markdown().splitlines()
    assert head.startswith("| entrant | seconds | tokens/s | speed-up | forwards | rows |")
    assert slow.startswith(
        "| slow | 4.00 (2.00 to 8.00) | 2.0 | 1.00 (1.00 to 1.00) | 4 | 2.0 | 2.00 | 50% | 25% | 12%"
    )
    assert fast.startswith("| fast | 2.00 (2.00 to 2.00) | 4.0 | 2.00 (1.00 to 4.00) |")
    assert fast.endswith("| n/a |")
    assert (what, where) == ("m: canvas 8.", f"{machine_line()}.")
    assert "over those of slow in the same round" in how
    content = json.loads(made.json())
    assert content["lanes"][1]["speed_ups"] == [4.0, 2.0, 1.0]
    assert content["machine"]["line"] == machine_line()
    assert (content["against"], content["rounds"]) == ("slow", 3)
    assert [spread([0.01234]), spread([1234.5]), spread([12.0])] == ["0.0123", "1,234", "12.0"]


def test_lanes_over_a_variable_are_compared_at_each_value() -> None:
    lanes = [lane("a", [4.0], 1), lane("b", [2.0], 1), lane("a", [4.0], 2), lane("b", [1.0], 2)]
    made = Report(lanes, {"model": "m"}, over="beam")
    assert [made.speed_ups(one) for one in lanes] == [[1.0], [2.0], [1.0], [4.0]]
    assert [made.growth(one) for one in lanes] == [[1.0], [1.0], [1.0], [2.0]]
    assert [(row[0], row[1], row[-1]) for row in made.rows()][-1] == ("2", "b", "2.00")
    picture = bench_picture(made)
    assert "over the beam size K" in picture.caption
    assert machine_line() in picture.caption
    with pytest.raises(SettingsError, match="--over"):
        bench_picture(Report(lanes[:1], {"model": "m"}))


def test_memory_is_told_where_the_system_tells_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cpu = torch.device("cpu")
    peak = memory.Peak(cpu)
    held = torch.zeros(2**22)
    found = peak.bytes()
    assert found is None or found >= 0.9 * held.nbytes
    monkeypatch.setattr(memory, "_RESET", tmp_path / "no" / "file")
    assert memory.Peak(cpu).bytes() is None
    monkeypatch.setattr(memory, "_RESET", tmp_path / "written")
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "none")
    assert memory.Peak(cpu).bytes() is None
    assert memory.Peak(torch.device("meta")).bytes() is None


def test_shapes_are_read_and_checked(model: Any) -> None:
    assert Shape.read("") == Shape()
    assert Shape.read(" layers = 2, vocab=1000") == Shape(layers=2, vocab=1000)
    assert (Shape().mask_id, Shape.read(str(Shape(heads=4)))) == (126336, Shape(heads=4))
    for text, told in (
        ("layers", "written like hidden=512,layers=8"),
        ("layers=-2", "written like"),
        ("layer=2", "Did you mean 'layers'"),
        ("heads=7", "hidden=512 cannot have heads=7"),
        ("vocab=100", "vocab must be a whole number of at least 256"),
        ("layers=0", "layers must be a whole number of at least 1"),
        ("hidden=99999999", "at most"),
        ("hidden=9999996,heads=2", "GB, more than this machine has"),
        ("layers=5000", "layers must be a whole number of at most 1000"),
    ):
        with pytest.raises(SettingsError, match=re.escape(told)):
            Shape.read(text)
    again = random_model(Shape.read(TEXT), 0, "cpu", "bfloat16")
    assert again.dtype == torch.bfloat16
    assert torch.equal(again.backbone.embed_tokens.weight, model.backbone.embed_tokens.weight.bfloat16())
    with pytest.raises(UnknownName, match="float32"):
        random_model(Shape.read(TEXT), 0, "cpu", "float8")


def test_random_weights_predict_other_tokens_at_other_masks_and_are_more_or_less_sure(model: Any) -> None:
    """With the usual weights all masks had the same token and nearly the same confidence."""
    row, fill = Workload(random_prompts(model.facts, 1, 40, False, 0), 32).canvases(model.facts.mask_id)[0]
    sure, tokens = model.logits(model.backbone(input_ids=torch.tensor([row]))[0][0, fill]).softmax(-1).max(-1)
    assert sure.min() < 0.6
    assert sure.max() > 0.9
    assert len(set(tokens.tolist())) > 4


def test_prompts_are_the_same_however_many_there_are(model: Any) -> None:
    few, many = (random_prompts(model.facts, number, 20, True, 5) for number in (2, 6))
    assert few == many[:2]
    lengths = [len(prompt) for prompt, _ in many]
    assert min(lengths) >= 10
    assert max(lengths) <= 30
    assert len(set(lengths)) > 1
    assert all(token != model.facts.mask_id for prompt, _ in many for token in prompt)


def test_a_plan_makes_every_entrant_at_every_value() -> None:
    lm = LM(random_checkpoint(Shape.read(TEXT), 0, "cpu"))

    def strategies(more: Mapping[str, Any]) -> dict[str, Strategy]:
        return {"pbs": PositionBeam(**more)}

    plan = Plan(["none", "dual"], prompt=4, canvas=6, options={"block_length": 3, "refresh_every": 2}, baseline=True)
    names = ["pbs", "pbs, dual", "plain-pbs"]
    assert [one.entrant.name for one in plan.lanes(lm, strategies)] == names
    wide = Plan(["dual"], prompt=4, over="beam", values=[1, 3], one_by_one=True).lanes(lm, strategies)
    assert [(one.value, one.entrant.name) for one in wide] == [
        (1, "pbs, dual"),
        (1, "pbs, dual, one by one"),
        (3, "pbs, dual"),
        (3, "pbs, dual, one by one"),
    ]
    assert [one.entrant.strategy.beam for one in wide if isinstance(one.entrant, Decoder)] == [1, 1, 3, 3]
    longer = Plan(prompt=4, over="canvas", values=[2, 5]).lanes(lm, strategies)
    assert [one.workload.canvas for one in longer] == [2, 5]
    assert plan.settings(lm)["block length"] == 3
    with pytest.raises(PromptTooLong, match="up to 528 tokens; the model's context is 256"):
        Plan(prompt=400).lanes(lm, strategies)
    with pytest.raises(SettingsError, match="requests must be a whole number of at least 1"):
        Plan(requests=0).lanes(lm, strategies)


def test_prompts_can_be_those_of_a_task() -> None:
    lm, task = load("random-llada", "cpu"), MiniSums()
    problems = task.distinct("test", 2)
    found = task_prompts(lm, task, problems)
    assert [lm.text_of(list(before)) for before, _ in found] == [problem.prompt for problem in problems]
    with pytest.raises(SettingsError, match="fills blanks"):
        task_prompts(lm, MiniInfill(), [])
    assert Plan(task=task).lanes(lm, lambda _: {"greedy": Greedy()})[0].workload.canvas == task.canvas
    assert "prompt" not in Plan(task=task).settings(lm)


def test_the_command_writes_a_table_and_everything_as_json(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    shown = invoke(
        *[*TINY, "-s", "greedy,soar", "--threshold", "0.4", "--caches", "none,dual", "--block-length", "3"],
        *["--baseline", "--against", "plain", "--json", str(file)],
    ).stdout
    content = json.loads(file.read_text())
    names = ["greedy", "greedy, dual", "soar", "soar, dual", "plain", "plain-dual", "plain-soar"]
    assert [one["entrant"] for one in content["lanes"]] == names
    assert content["settings"]["threshold"] == 0.4
    assert content["lanes"][4]["speed_up"] == 1.0
    assert content["lanes"][0]["tokens"] == 6
    assert all(name in shown for name in names)
    assert "backbone" in shown
    assert machine_line().partition(",")[0] in " ".join(shown.split())
    wide = invoke(*TINY, "--format", "markdown").stdout
    assert wide.startswith("| entrant | seconds |")
    assert json.loads(invoke(*TINY, "--format", "json").stdout)["over"] is None


def test_curves_have_their_data_beside_them(tmp_path: Path) -> None:
    file = tmp_path / "b.svg"
    invoke(*TINY, "-s", "greedy,pbs", "--over", "beam=1,2", "--figure", str(file))
    assert file.read_text().startswith("<?xml")
    rows = list(csv.DictReader((tmp_path / "b.csv").open()))
    assert [(row["panel"], row["method"], row["value"]) for row in rows] == [
        ("beam", "greedy", "1"),
        ("beam", "pbs", "1"),
        ("beam", "greedy", "2"),
        ("beam", "pbs", "2"),
    ]


def test_a_model_and_a_task_can_be_timed() -> None:
    shown = invoke(
        *["bench", "-m", "random-llada", "--device", "cpu", "-t", "mini-sums", "-n", "4", "--repeats", "1"],
        *["--over", "requests=1,3", "--one-by-one", "--format", "markdown"],
    ).stdout
    assert "| 3 | greedy, one by one |" in shown
    assert "random-llada: dtype float32, task mini-sums, canvas 4" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-s", "sore"], "soar"),
        (["-s", ""], "one or more different strategies"),
        (["-s", "greedy,greedy"], "one or more different strategies"),
        (["--caches", "daul"], "dual"),
        (["--caches", "dual,dual"], "one or more different caches"),
        (["--beam", "2"], "None of the strategies greedy has a setting 'beam'"),
        (["--over", "prompt"], "--over takes a name and values"),
        (["--over", "prompt=a"], "not a list of numbers"),
        (["--over", "promt=1"], "prompt"),
        (["--over", "prompt=8,8"], "different values"),
        (["--over", "beam=1,2"], "None of the strategies greedy has a setting 'beam'"),
        (["--over", "canvas=0"], "canvas must be a whole number of at least 1"),
        (["--figure", "x.svg"], "add --over"),
        (["--figure", "x.doc", "--over", "canvas=2"], "ends in"),
        (["--figure", "no/x.svg", "--over", "canvas=2"], "There is no folder"),
        (["--json", "no/such/x.json"], "There is no folder"),
        (["--json", "x.csv", "--figure", "x.svg", "--over", "canvas=2"], "same file"),
        (["--format", "tabel"], "markdown"),
        (["--against", "plain"], "greedy"),
        (["--threads", "0"], "threads must be a whole number"),
        (["--repeats", "0"], "repeats must be a whole number"),
        (["--requests", "0"], "requests must be a whole number"),
        (["--requests", "60000", "--prompt", "1000"], "more than can be held"),
        (["-t", "mini-sums"], "leave out the task, or the length of the prompt"),
        (["--block-length", "0"], "block_length must be a whole number"),
        (["--refresh-every", "0"], "refresh_every must be a whole number"),
        (["--refresh-every", "2"], "refresh_every needs a cache"),
        (["--revision", "main"], "--revision is about a checkpoint"),
        (["-m", "mini-llada"], "not both"),
        (["-n", "400"], "context"),
        (["--dtype", "int4"], "float32"),
    ],
)
def test_mistakes_are_sentences(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SoarError, match=re.escape(told)):
        invoke(*TINY, *arguments)
    assert not list(tmp_path.iterdir())


def test_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from soar_dlm.cli.main import app;"
        "assert CliRunner().invoke(app, ['bench', '--help']).exit_code == 0;"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_shape_takes_the_place_of_the_model_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOAR_MODEL", "no/such-model")
    assert "random weights" in invoke(*TINY).stdout
