"""Batches and evaluations on a real Ray cluster of two nodes on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Optional

import pytest
import typer
from typer.testing import CliRunner

from soar_dlm.cli.ray import RayCommand
from soar_dlm.errors import CheckpointError, SettingsError, SoarError, UnexpectedError
from soar_dlm.scale.cluster import connected, own_error, resources
from soar_dlm.scale.evaluation import _check_alike
from soar_dlm.scale.here import run_here
from soar_dlm.scale.inputs import planned
from soar_dlm.scale.on_ray import run_on_ray
from soar_dlm.scale.pool import Pool, mapped, pool_of
from soar_dlm.scale.shards import Shards
from soar_dlm.scale.worker import Done, Task
from tests.command import invoke
from tests.ray_nodes import nodes
from tests.ray_work import broken, dying, failing_later, never_starting

pytest.importorskip("ray", reason="Ray is not installed: pip install 'soar-dlm[scale]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")

PROMPTS = [{"prompt": f"text {number}", "id": number} for number in range(24)]
MODEL = ["-m", "random-llada", "-n", "8", "-s", "pbs", "--beam", "2"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with nodes(2) as cluster:
        yield cluster.address


def written(path: Path) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in PROMPTS))
    return path


def records(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for one in found:
        one["mean_confidence"] = pytest.approx(one["mean_confidence"], abs=1e-5)
    return found


def test_a_batch_on_a_cluster_has_the_records_of_one_process(address: str, tmp_path: Path) -> None:
    source = written(tmp_path / "prompts.jsonl")
    start = ["batch", str(source), *MODEL, "--chunk", "3", "--merge", "--trace"]
    assert invoke(*start, "-o", str(tmp_path / "here")).exit_code == 0
    found = invoke(*start, "-o", str(tmp_path / "there"), "--ray", address, "--workers", "2")
    assert found.exit_code == 0, found.output
    assert records(tmp_path / "there") == records(tmp_path / "here")
    for name in ("results", "traces"):
        here = {path.relative_to(tmp_path / "here") for path in (tmp_path / "here" / name).rglob("*.jsonl")}
        there = {path.relative_to(tmp_path / "there") for path in (tmp_path / "there" / name).rglob("*.jsonl")}
        assert here == there
        assert len(here) == 8


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As many as a worker with one CPU has: a run is not resumed with another number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_an_evaluation_on_a_cluster_has_the_lines_of_one_process(
    address: str, tmp_path: Path, one_thread: None
) -> None:
    start = ["eval", "-m", "mini-llada", "-t", "mini-gsm", "-n", "16", "-s", "greedy,soar", "--limit", "12"]
    start += ["--chunk", "4", "--traces"]
    on_ray = ["--ray", address, "--workers"]

    def run(name: str, *more: str) -> None:
        found = invoke(*start, "-o", str(tmp_path / name), *more)
        assert found.exit_code == 0, found.output

    def begun(name: str, by: str) -> str:
        """A folder whose run ended in the second of three rounds."""
        shutil.copytree(tmp_path / by, tmp_path / name)
        path = tmp_path / name / "mini-gsm" / "results.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:13]) + '{"torn')
        return name

    def lines(name: str) -> list[dict[str, Any]]:
        path = tmp_path / name / "mini-gsm" / "results.jsonl"
        own = [json.loads(line) for line in path.read_text().splitlines()]
        return [{**one, "seconds": 0, "mean_confidence": pytest.approx(one["mean_confidence"])} for one in own]

    def settings(name: str) -> Any:
        return json.loads((tmp_path / name / "mini-gsm" / "manifest.json").read_text())["settings"]

    run("here")
    run("there", *on_ray, "2")
    run(begun("here, then there", "here"), *on_ray, "1")
    run(begun("there, then here", "there"))
    for name in ("there", "here, then there", "there, then here"):
        assert lines(name) == lines("here")
        assert settings(name) == settings("here")
    assert invoke("table", str(tmp_path / "there")).exit_code == 0


def test_workers_that_are_not_alike_are_refused_by_what_differs() -> None:
    _check_alike({"device": "cpu"}, {"device": "cpu"})
    with pytest.raises(SettingsError, match="device was 'cpu', is now 'cuda'"):
        _check_alike({"device": "cpu"}, {"device": "cuda"})


class Ready:
    """The model for a worker; the first worker to ask for it on a fresh marker is killed once it has decoded some."""

    def __init__(self, marker: Path | None = None) -> None:
        self.marker = marker

    def __call__(self) -> Any:
        from soar_dlm.lm import load

        lm = load("random-llada")
        if self.marker is not None:
            try:
                self.marker.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                lm.model.hidden = self._dying(lm.model.hidden)  # type: ignore[method-assign]
        return lm, lm.strategy("greedy")

    @staticmethod
    def _dying(hidden: Any) -> Any:
        forwards = iter(range(20))

        def run(rows: Any) -> Any:
            if next(forwards, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return hidden(rows)

        return run


def test_a_worker_that_is_killed_loses_and_doubles_nothing(address: str, tmp_path: Path) -> None:
    plan = planned([written(tmp_path / "prompts.jsonl")], 4)
    expected, found = tmp_path / "here", tmp_path / "there"
    for folder in (expected, found):
        folder.mkdir()
        (folder / "job.json").write_text("{}")
    run_here(Task(Ready(), Shards(expected), None, {"max_new_tokens": 8}), plan.chunks, 2, lambda _: None, lambda: None)
    done: list[Done] = []
    marker = tmp_path / "died"
    with connected(address):
        task = Task(Ready(marker), Shards(found), None, {"max_new_tokens": 8})
        run_on_ray(task, plan.chunks, 2, Pool(2, 2, 1.0, 0.0), done.append)
    assert marker.exists()
    assert sorted(one.number for one in done) == list(range(6))
    assert sum(one.prompts for one in done) == 24
    for folder in (expected, found):
        Shards(folder).merge(6)
    assert records(found) == records(expected)


ONE = Pool(1, 1, 1.0, 0.0)


def test_what_a_worker_raises_ends_the_run_and_is_told_as_it_is(address: str) -> None:
    """Ray passes on the text alone of what a constructor raises, and lost what an async call raised: the run hung."""
    with connected(address):
        with pytest.raises(CheckpointError, match=r"^There is no such model here\.$") as caught:
            list(mapped([["1"], ["2"]], broken, ONE, 2, ordered=False))
        assert "ray_work.py" in str(caught.value.__cause__)  # where it was raised
        results = mapped(
            [["1", "2", "3", "4"], *([str(number)] for number in range(10, 20))], failing_later, ONE, 2, True
        )
        assert [next(results), next(results)] == ["1", "2"]
        with pytest.raises(UnexpectedError, match="ZeroDivisionError: by nothing") as unexpected:
            next(results)
        assert "in work" in str(unexpected.value.__cause__)


def test_workers_that_die_again_and_again_end_the_run(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soar_dlm.scale.pool.DEATHS", 1)
    with connected(address):
        for make, tasks in ((dying, [["bad"], ["1"]]), (never_starting, [["1"]])):
            with pytest.raises(SoarError, match="died too often"):
                list(mapped(tasks, make, ONE, 1, ordered=False))


def test_more_workers_than_the_cluster_holds_are_refused(address: str) -> None:
    with connected(address):
        assert pool_of(None, None, None) == Pool(2, 2, 1.0, 0.0)
        with pytest.raises(SettingsError, match="room for 2 workers with 1 CPU each, not for 3"):
            pool_of((3, 3), None, None)
        with pytest.raises(SettingsError, match="GPU"):
            pool_of((1, 1), None, 1.0)


def test_a_cluster_that_asks_for_no_token_is_shown_none(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "f" * 64)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with connected(address):
        assert os.environ["RAY_AUTH_MODE"] == "disabled"
        assert resources()["CPU"] == 2.0
    assert "RAY_AUTH_MODE" not in os.environ


def test_a_cluster_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(SettingsError, match=r"refused.*ray start"), connected("127.0.0.1:1"):
        pass


def test_an_error_behind_others_is_found() -> None:
    inner, middle, outer = SoarError("why"), RuntimeError("report"), ValueError("more")
    middle.__cause__, outer.__cause__ = inner, middle
    assert own_error(outer) is inner
    assert own_error(RuntimeError("none of ours")) is None


@pytest.mark.parametrize(
    ("args", "address", "rest"),
    [
        (["--ray"], "", []),
        (["--ray", "auto"], "auto", []),
        (["--ray", "10.0.0.1:6379", "file"], "10.0.0.1:6379", ["file"]),
        (["--ray", "prompts.jsonl"], "", ["prompts.jsonl"]),
        (["--ray=ray://head:10001"], "ray://head:10001", []),
        (["--ray", "-x"], "", ["-x"]),
        (["--", "--ray"], None, ["--ray"]),
    ],
)
def test_the_address_may_be_left_out(args: list[str], address: str | None, rest: list[str]) -> None:
    app, seen = typer.Typer(), list[Any]()

    @app.command(cls=RayCommand)
    def command(
        rest: Annotated[Optional[list[str]], typer.Argument()] = None,
        ray: Annotated[Optional[str], typer.Option()] = None,
        x: Annotated[bool, typer.Option("-x")] = False,
    ) -> None:
        seen.extend([ray, [*(rest or ()), *(["-x"] if x else [])]])

    assert CliRunner().invoke(app, args).exit_code == 0
    assert seen == [address, rest]
