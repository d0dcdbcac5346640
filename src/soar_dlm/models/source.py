"""Where a checkpoint's files are: in a folder, on the Hub, or in the package."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers.utils import cached_file
from transformers.utils.hub import extract_commit_hash

from soar_dlm.errors import LONGEST_SHOWN, CheckpointError, InputFileError, UnknownName, shown, told
from soar_dlm.models.embedded import embedded_folder, embedded_names
from soar_dlm.strict_json import read_json


@dataclass(frozen=True)
class Source:
    """The files of one checkpoint.

    ``name`` is what the user typed and what errors show; ``place`` is a folder or a Hub id. ``access`` holds the
    options of every Hub access (revision, token, cache_dir, local_files_only), under the names transformers uses.
    """

    name: str
    place: str
    access: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def named(cls, name: str | os.PathLike[str], access: Mapping[str, Any]) -> Source:
        """The source that an embedded name, a folder or a Hub id stands for; any other name is refused."""
        text = os.fspath(name)
        place = text if _is_hub_id(text) else embedded_folder(text) or str(Path(text).expanduser())
        return cls(text, place, access)

    def find(self, file: str) -> Path | None:
        """The local path of a file, downloaded if need be; None if the checkpoint has no such file."""
        path = cached_file(self.place, file, _raise_exceptions_for_missing_entries=False, **self.access)
        return None if path is None else Path(path)

    def read_object(self, file: str) -> dict[str, Any] | None:
        """The object in a JSON file; None if the checkpoint has no such file."""
        path = self.find(file)
        return None if path is None else read_object(path)

    @property
    def commit(self) -> str | None:
        """The commit of a checkpoint from the Hub."""
        path = self.find("config.json") or self.find("adapter_config.json")
        commit: str | None = extract_commit_hash(None if path is None else str(path), None)
        return commit


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a checkpoint."""
    try:
        content = read_json(path.read_bytes(), lenient=True)
    except (OSError, ValueError, InputFileError) as error:
        raise CheckpointError(f"{str(path)!r} cannot be read as JSON: {told(error)}.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{str(path)!r} must hold one JSON object, {{...}}.")
    return content


def _is_hub_id(name: str) -> bool:
    if name in embedded_names() or (name and Path(name).expanduser().is_dir()):
        return False
    if difflib.get_close_matches(name[:LONGEST_SHOWN], embedded_names(), n=1, cutoff=0.8):
        raise UnknownName("embedded model", name, embedded_names())
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) or name.startswith((".", "~")):
        raise CheckpointError(
            f"There is no folder {shown(name)}. Check the path, or give a Hub id such as owner/model."
        )
    return True
