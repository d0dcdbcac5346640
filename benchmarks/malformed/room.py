"""The valid things that cases damage: checkpoints, result folders, presets, recipes; and the command itself."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import soar_dlm as soar
from soar_dlm.errors import SoarError
from soar_dlm.models.random_checkpoint import write_dreamon, write_llada

PRESET = """about = "a preset"
strategy = "deliberate"

[settings]
threshold = 0.9
tries = 2
drafts = ["open", "plain"]
metric = "probability"
"""
RECIPE = """name = "tiny"
about = "a recipe"
seed = 1

[model]
family = "llada"
width = 32
layers = 1
heads = 2
context = 256
rope_theta = 1000.0
number_waves = false

[tokenizer]
vocabulary = 300
texts = 20

[data]
full_canvas = 0.6
longest_canvas = 48

[data.tasks]
mini-sums = 1.0

[training]
steps = 20
batch_tokens = 512
muon_rate = 0.015
adam_rate = 0.005
weight_decay = 0.01
warmup = 1
decay = 0.8
precision = "float32"
compile = false

[report]
log = 10
validate = 10
problems = 2
save = 10
"""
LINES = """{"prompt": "a", "id": 1}
{"messages": [{"role": "user", "content": "b"}]}
{"prompt": "c", "nested": {"x": [1, 2.5, null]}}
"""
MODEL = "random-llada"
SLOW = 5
"""Seconds of the processor's time that no call may take."""


class NotSoar(Exception):
    """A case found something other than an error of the library: a stack trace, a file that is not as it should be."""


class Hung(Exception):
    """A case did not come to its end."""


@dataclass(frozen=True)
class Case:
    """A call that may be refused by a SoarError or do its work, and nothing else."""

    label: str
    run: Callable[[], object]


class Room:
    """A folder with everything that cases damage, made once for each process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lm = soar.load(MODEL, device="cpu")
        self.dreamon = soar.load("random-dreamon", device="cpu")
        self.llada_files = write_llada(folder / "llada")
        self.sharded_files = write_llada(folder / "sharded", shards=2)
        self.dreamon_files = write_dreamon(folder / "dreamon")
        self.preset, self.recipe, self.lines = (folder / name for name in ("preset.toml", "recipe.toml", "lines.jsonl"))
        self.preset.write_text(PRESET)
        self.recipe.write_text(RECIPE)
        self.lines.write_text(LINES)
        self._results: Path | None = None
        self._sweep: Path | None = None

    @property
    def results(self) -> Path:
        """A folder of ``soar eval``; made on first use."""
        if self._results is None:
            whole = self.folder / "eval"
            measured = ("-t", "mini-sums", "--limit", "4", "--chunk", "2", "-n", "4", "-o", str(whole))
            self._must("eval", "-m", MODEL, "-s", "greedy,soar", *measured)
            self._results = whole / "mini-sums"
        return self._results

    @property
    def sweep(self) -> Path:
        """A folder of ``soar sweep``; made on first use."""
        if self._sweep is None:
            self._sweep = self.folder / "sweep"
            measured = ("-t", "mini-sums", "--limit", "4", "--chunk", "2", "-n", "4", "-o", str(self._sweep))
            self._must("sweep", "-m", MODEL, "--thresholds", "0.8,0.9", *measured)
        return self._sweep

    def _must(self, *args: str) -> None:
        if command(*args):
            raise RuntimeError(f"soar {' '.join(args)} failed")

    def fresh(self, source: Path | None = None) -> Path:
        """An empty folder for one case, or a copy of another folder or file in it."""
        place = self.folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if source is None:
            return place
        target = place / source.name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        return target


def command(*args: str, stdin: bytes = b"", folder: Path | None = None) -> int:
    """``soar`` with these arguments, in this process and this folder: its exit code. A stack trace is NotSoar."""
    from soar_dlm.cli.main import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2))
    before: Any = (sys.argv, sys.stdin, os.getcwd())
    sys.argv, sys.stdin = ["soar", *args], io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    code: object = 0
    if folder is not None:
        os.chdir(folder)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv, sys.stdin = before[0], before[1]
        os.chdir(before[2])
    for stream in (out, err):
        stream.flush()
        said = stream.buffer.getvalue().decode("utf-8", "replace")
        if "Traceback (most recent call last)" in said:
            raise NotSoar(said.strip().splitlines()[-1])
    return code if isinstance(code, int) else int(bool(code))


def refused(code: int) -> None:
    """A command that ended with an error counts as a refusal."""
    if code:
        raise SoarError(f"exit code {code}")
