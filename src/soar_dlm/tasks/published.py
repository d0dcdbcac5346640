"""Published benchmarks: fixed problems, from a folder the user names or from the Hugging Face Hub."""

from __future__ import annotations

import gzip
import json
import os
import random
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from soar_dlm.errors import InputFileError, MissingExtra, SettingsError
from soar_dlm.tasks.fixed_sets import SIZE
from soar_dlm.tasks.problem import Problem, Split
from soar_dlm.tasks.task import Task

DATA_DIR = "SOAR_DATA_DIR"
"""The environment variable that names the folder where none is given."""


ON_THE_HUB = "hf://datasets/{hub}@refs/convert/parquet/{subset}/{split}/*.parquet"
"""The Hub's own copy of every dataset: no code of the dataset's is run, which some of them would need."""


class PublishedTask(Task):
    """A task whose problems are read, not drawn; all of them are for testing.

    ``data_dir`` is a folder with the benchmark's own files, by default the one that SOAR_DATA_DIR names; without
    either, they come from the Hub.
    """

    def __init__(self, data_dir: str | os.PathLike[str] | None = None) -> None:
        named = data_dir if data_dir is not None else os.environ.get(DATA_DIR)
        self.data_dir = None if named is None else Path(named)

    @abstractmethod
    def load(self) -> list[Problem]:
        """All problems, in the order they were published."""

    @cached_property
    def _all(self) -> list[Problem]:
        return self.load()

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
        return list(self.problems(split))[:count]


def read_rows(data_dir: Path | None, file: str, hub: str, subset: str, split: str) -> list[dict[str, Any]]:
    """Rows of ``file`` in the folder (JSON lines, gzipped or not), or of a dataset's subset and split on the Hub."""
    if data_dir is None:
        return _from_hub(hub, subset, split)
    for path in (data_dir / file, data_dir / file.removesuffix(".gz")):
        if path.exists():
            try:
                content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                return [json.loads(line) for line in content.decode("utf-8").splitlines() if line.strip()]
            except (OSError, EOFError, ValueError) as error:
                raise InputFileError(f"Cannot read {path}: {error}.") from error
    raise InputFileError(f"There is no {file} in {data_dir}. Name the folder that holds it, or none to use the Hub.")


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
            f"Cannot get {subset} of {hub} from the Hub: {error}. Without a network, name a folder with its files."
        ) from error
