"""The prompts of a batch: which files they are in, and how they are cut into chunks."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from soar_dlm.errors import InputFileError, MissingExtra, PromptError
from soar_dlm.files import explained
from soar_dlm.prompt_lines import Line, line_of, raw_lines, read_line

JSON_LINES, PARQUET = (".jsonl", ".ndjson"), ".parquet"
KINDS = (*JSON_LINES, PARQUET)


@dataclass(frozen=True)
class Part:
    """Prompts of one file that follow one another. ``start`` is a byte of JSON lines, or a row of Parquet."""

    path: str
    start: int
    count: int


@dataclass(frozen=True)
class Chunk:
    """Prompts that are decoded and written together; ``first`` is the index of the first among all prompts."""

    number: int
    first: int
    parts: tuple[Part, ...]

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)


@dataclass(frozen=True)
class Plan:
    """All chunks of a batch, the number of its prompts, and the SHA-256 of the contents of its files."""

    chunks: Sequence[Chunk]
    prompts: int
    sha256: str


def files_of(given: Sequence[str]) -> list[Path]:
    """The files that names stand for, each once: a file, all JSON lines and Parquet below a folder, or a pattern.

    Files of a folder or a pattern come in the order of their names; those that start with a dot do not count.
    """
    found: dict[Path, Path] = {}
    for name in given:
        for path in _named(name):
            with explained("read", path):
                found.setdefault(path.resolve(), path)
    return list(found.values())


def _named(name: str) -> list[Path]:
    path = Path(name).expanduser()
    with explained("read", path):
        if path.is_dir():
            inside = [one for kind in KINDS for one in path.rglob(f"*{kind}")]
            own = sorted(one for one in inside if one.is_file() and not _hidden(one.relative_to(path)))
            if not own:
                raise InputFileError(f"{path} has no prompts: there is no file *.jsonl, *.ndjson or *.parquet in it.")
            return own
        if path.exists():
            return [_known(path)]
        own = sorted(Path(one) for one in glob.glob(str(path), recursive=True) if Path(one).is_file())
    if not own:
        raise InputFileError(f"There is no file {name}. Give files, folders or patterns such as 'prompts/*.jsonl'.")
    return [_known(one) for one in own]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _known(path: Path) -> Path:
    if path.suffix not in KINDS:
        raise InputFileError(
            f"{path} is neither JSON lines (*.jsonl, *.ndjson) nor Parquet (*.parquet); a batch reads these, unpacked."
        )
    if not path.is_file():
        raise InputFileError(f"{path} is not a file that can be read more than once, as a batch must.")
    return path


def planned(files: Sequence[Path], size: int) -> Plan:
    """Read all files once and cut their prompts, in order, into chunks of ``size``; the last may be smaller.

    A chunk may have prompts of several files, so that many small files do not make many small chunks.
    """
    digest = sha256()
    chunks: list[Chunk] = []
    parts: list[Part] = []
    total = in_chunk = 0
    for path in files:
        own = start = 0
        for place in _starts(path, digest):
            start = start if own else place
            own, total, in_chunk = own + 1, total + 1, in_chunk + 1
            if in_chunk == size:
                chunks.append(Chunk(len(chunks), total - size, (*parts, Part(str(path), start, own))))
                parts, own, in_chunk = [], 0, 0
        if own:
            parts.append(Part(str(path), start, own))
    if parts:
        chunks.append(Chunk(len(chunks), total - in_chunk, tuple(parts)))
    if not chunks:
        raise PromptError("The input has no prompts; write one JSON object per line.")
    return Plan(chunks, total, digest.hexdigest())


class _Hashed:
    """A file that adds what is read from it to a digest."""

    def __init__(self, file: BinaryIO, digest: Any) -> None:
        self._file, self._digest = file, digest

    def readline(self, limit: int) -> bytes:
        content = self._file.readline(limit)
        self._digest.update(content)
        return content


def _starts(path: Path, digest: Any) -> Iterator[int]:
    """Where each prompt of a file starts, while its content is added to the digest."""
    with explained("read", path), path.open("rb") as file:
        if path.suffix in JSON_LINES:
            for start, _ in raw_lines(cast(BinaryIO, _Hashed(file, digest))):
                yield start
        else:
            while content := file.read(2**20):
                digest.update(content)
            yield from range(_parquet(str(path)).metadata.num_rows)
        digest.update(b"\0")


def lines_of(chunk: Chunk) -> Iterator[Line]:
    """The prompts of a chunk; those that cannot be read have errors in their place."""
    index = chunk.first
    for part in chunk.parts:
        count = 0
        with explained("read", Path(part.path)):
            for line in _lines(part, index):
                yield line
                count += 1
        if count < part.count:
            raise InputFileError(f"{part.path} is shorter than it was at the start. Restore it, and run this again.")
        index += count


def _lines(part: Part, index: int) -> Iterator[Line]:
    if Path(part.path).suffix in JSON_LINES:
        with open(part.path, "rb") as file:
            file.seek(part.start)
            for place, (_, raw) in enumerate(islice(raw_lines(file, part.start), part.count)):
                yield read_line(index + place, raw)
    else:
        for place, row in enumerate(_rows(part)):
            yield line_of(index + place, row)


def _rows(part: Part) -> Iterator[dict[str, Any]]:
    """Some rows of a Parquet file, as objects."""
    first, stop = 0, part.start + part.count
    metadata = _parquet(part.path).metadata
    for group in range(metadata.num_row_groups):
        size = metadata.row_group(group).num_rows
        low, high = max(part.start - first, 0), min(stop - first, size)
        if low < high:
            yield from _row_group(part.path, group).slice(low, high - low).to_pylist()
        first += size


@lru_cache(maxsize=8)
def _parquet(path: str) -> Any:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "scale", "Reading Parquet") from error
    try:
        return parquet.ParquetFile(path)
    except ArrowException as error:
        raise InputFileError(f"{path} cannot be read as Parquet: {error}.") from error


@lru_cache(maxsize=2)
def _row_group(path: str, group: int) -> Any:
    """A row group, kept for the next chunk, which most often begins in it."""
    return _parquet(path).read_row_group(group)
