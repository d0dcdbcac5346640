"""Published benchmarks: fixed problems from a folder or from the Hugging Face Hub, in their published order."""

from __future__ import annotations

import gzip
import os
import random
import zlib
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from soar_dlm import checks
from soar_dlm.errors import InputFileError, MissingExtra, SettingsError, told
from soar_dlm.strict_json import read_json
from soar_dlm.tasks.fixed_sets import SIZE
from soar_dlm.tasks.problem import Problem, Split
from soar_dlm.tasks.task import Task

DATA_DIR = "SOAR_DATA_DIR"
"""The environment variable that names the folder if none is given."""


ON_THE_HUB = "hf://datasets/{hub}@refs/convert/parquet/{subset}/{split}/*.parquet"
"""The Hub's Parquet copy of every dataset; reading it runs no code of the dataset, unlike loading some originals."""


class PublishedTask(Task):
    """A task whose problems are read, not drawn; all of them are for testing.

    ``data_dir`` is a folder with the benchmark's own files, by default the one named by SOAR_DATA_DIR. Without either,
    they come from the Hub.
    """

    def __init__(self, data_dir: str | os.PathLike[str] | None = None) -> None:
        named = data_dir if data_dir is not None else os.environ.get(DATA_DIR)
        self.data_dir = None if named is None else Path(named)

    @abstractmethod
    def load(self) -> list[Problem]:
        """All problems, in the order they were published."""

    @cached_property
    def _all(self) -> list[Problem]:
        """The problems, of which there must be some, and all of them whole."""
        try:
            found = self.load()
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise self._wrong(f"a row has no {error}" if isinstance(error, KeyError) else str(error)) from error
        for place, problem in enumerate(found, start=1):
            texts = (problem.prompt, problem.answer, problem.suffix, problem.key)
            if not all(isinstance(text, str) for text in texts):
                raise self._wrong(f"problem {place} has something other than text where text belongs")
        if not found:
            raise self._wrong("there are no problems in it")
        return found

    def _wrong(self, why: str) -> InputFileError:
        return InputFileError(
            f"The data of {self.name} is not as it was published: {why}. Get its files again, or name another folder."
        )

    def draw(self, rng: random.Random) -> Problem:
        return rng.choice(self._all)

    def problems(self, split: Split = "test", seed: int = 0) -> Iterator[Problem]:
        if split != "test":
            raise SettingsError(f"{self.name} is for testing only; it has no {split} problems.")
        return iter(self._all)

    def test_set(self) -> list[Problem]:
        return list(self._all)

    def distinct(self, split: Split = "test", count: int = SIZE, seed: int = 0) -> list[Problem]:
        """The first ``count`` problems in the order of the published files, or all if there are fewer."""
        return list(self.problems(split))[: checks.whole_number("count", count, 0)]


def read_rows(data_dir: Path | None, file: str, hub: str, subset: str, split: str) -> list[dict[str, Any]]:
    """Rows of ``file`` in the folder (JSON lines, gzipped or not), or of a dataset's subset and split on the Hub."""
    if data_dir is None:
        return _from_hub(hub, subset, split)
    for path in (data_dir / file, data_dir / file.removesuffix(".gz")):
        if path.exists():
            try:
                content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                rows = [read_json(line) for line in content.split(b"\n") if line.strip()]
            except (OSError, EOFError, ValueError, zlib.error, InputFileError) as error:
                raise InputFileError(f"Cannot read {path}: {told(error)}.") from error
            if not rows or not all(isinstance(row, dict) for row in rows):
                raise InputFileError(f"{path} must have a JSON object on each line, and at least one. Get it again.")
            return rows
    raise InputFileError(
        f"There is no {file} in {data_dir}. Name the folder that holds it, or name none to use the Hub."
    )


def _from_hub(hub: str, subset: str, split: str) -> list[dict[str, Any]]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingExtra("datasets", "eval", "Reading a benchmark from the Hub") from error
    try:
        files = ON_THE_HUB.format(hub=hub, subset=subset, split=split)
        return [dict(row) for row in load_dataset("parquet", data_files=files, split="train")]
    except Exception as error:
        raise InputFileError(
            f"Cannot get {subset} of {hub} from the Hub: {error}. Offline, name a folder that has its files."
        ) from error
