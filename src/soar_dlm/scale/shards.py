"""The results of a batch on disk: a folder that a run can be continued from, whenever it was killed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from soar_dlm import files
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.results import differences
from soar_dlm.strict_json import DEEPEST_RECORD, json_text, read_json

JOB, RECORDS, TRACES = "job.json", "results", "traces"
TOGETHER = 1000
"""Files in a folder."""


def fingerprint(settings: Mapping[str, Any]) -> str:
    """The SHA-256 of what the records of a batch depend on."""
    return sha256(json_text(dict(settings)).encode()).hexdigest()


@dataclass(frozen=True)
class Shards:
    """A folder with a file of records for each chunk, and one of traces where they are kept.

    1. ``job.json`` says what the records depend on. Once there are any, a run with other settings is refused.
    2. Each file is there whole or not at all, so a chunk is done if its file of records is there. Its traces are
       written first.
    3. Two workers that were given one chunk write the same file; the later one takes the place of the earlier.
    4. With ``job``, the :func:`fingerprint` of a run's settings, nothing is written once the folder is that of a run
       with others: a worker may outlive its run, where a machine is cut off.
    """

    folder: Path
    traces: bool = False
    job: str | None = None

    @contextmanager
    def alone(self, settings: Mapping[str, Any]) -> Iterator[None]:
        """Use the folder for a run with these settings, in no other process, made if need be."""
        with files.made_folder(self.folder), files.locked(self.folder):
            self._check(settings)
            for kind in (RECORDS, TRACES):
                for inner in sorted((self.folder / kind).glob("*")):
                    files.remove_leftovers(inner)
            yield

    def _check(self, settings: Mapping[str, Any]) -> None:
        plain = read_json(json_text(dict(settings)))
        begun = (self.folder / JOB).exists()
        if not begun and self.done():
            raise InputFileError(f"{self.folder} has {RECORDS} but no {JOB}. Name another folder.")
        if begun:
            self.settings()  # a file of another kind is not overwritten
        if not self.done():
            files.write_json(self.folder / JOB, plain)
        changed = list(differences(self.settings(), plain))
        if changed:
            raise SettingsError(
                f"{self.folder} has results of other settings: {'; '.join(changed)}. Use those settings, or name "
                "another folder."
            )

    def settings(self) -> dict[str, Any]:
        """What the records depend on."""
        path = self.folder / JOB
        if not path.exists():
            raise InputFileError(f"There is no batch in {self.folder}: it has no {JOB}.")
        with files.explained("read", path):
            content = path.read_bytes()
        try:
            found = read_json(content)
            if not isinstance(found, dict) or not all(type(found[name]) is int for name in ("prompts", "chunk")):
                raise InputFileError("It lacks the numbers of prompts and of those in a chunk.")
        except (InputFileError, KeyError) as error:
            raise InputFileError(
                f"{path} is not that of a batch. {error} Restore it, or name another folder."
            ) from error
        return found

    def check_seen(self) -> None:
        """Refuse to work where the folder is not that of the run, as on a machine that does not share it."""
        if not (self.folder / JOB).exists():
            raise SettingsError(
                f"This machine does not see {self.folder / JOB}. Workers write their results themselves: name a folder "
                "that all machines share, by the same path."
            )
        self._check_own()

    def _check_own(self) -> None:
        if self.job is not None and self.job != fingerprint(self.settings()):
            raise SettingsError(f"{self.folder} belongs to a run with other settings by now, so nothing is written.")

    def done(self) -> set[int]:
        """The numbers of the chunks whose records are there."""
        with files.explained("read", self.folder):
            found = [path for path in (self.folder / RECORDS).glob("*/*.jsonl") if not path.name.startswith(".")]
            return {int(path.parent.name) * TOGETHER + int(path.stem) for path in found if path.stem.isdecimal()}

    def has(self, number: int) -> bool:
        return self._path(RECORDS, number).exists()

    def failed(self, number: int) -> int:
        """How many prompts of a chunk that is done have an error instead of a text."""
        with files.explained("read", self._path(RECORDS, number)):
            lines = self._path(RECORDS, number).read_bytes().splitlines()
        return sum(b'"error"' in line and "error" in read_json(line, DEEPEST_RECORD) for line in lines)

    def write(self, number: int, records: Sequence[str], traces: Sequence[str]) -> None:
        """Write the lines of a chunk."""
        self._check_own()
        if self.traces:
            self._write(TRACES, number, traces)
        self._write(RECORDS, number, records)

    def _write(self, kind: str, number: int, lines: Sequence[str]) -> None:
        path = self._path(kind, number)
        with files.explained("write", path):
            path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, "".join(f"{line}\n" for line in lines))

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / kind / f"{number // TOGETHER:06}" / f"{number % TOGETHER:03}.jsonl"

    def merge(self, chunks: int) -> list[Path]:
        """Put the records of all chunks into one file in the order of the prompts, and the traces into another."""
        missing = sorted(set(range(chunks)) - self.done())
        if missing:
            raise SettingsError(
                f"{len(missing)} of {chunks} chunks in {self.folder} are not decoded yet. Run the command with the "
                "prompts first."
            )
        return [self._merged(kind, chunks) for kind in ([TRACES] if self.traces else []) + [RECORDS]]

    def _merged(self, kind: str, chunks: int) -> Path:
        whole = self.folder / f"{kind}.jsonl"
        with files.replacing(whole) as fresh, fresh.open("wb") as file:
            for number in range(chunks):
                file.write(self._path(kind, number).read_bytes())
        return whole
