"""What a long run has finished, so that the same command continues after an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from soar_dlm.files import append_line

BUILD = Path(__file__).parents[1] / "build"


class Journal:
    """Results by name, kept in a file: one line each, which is on the disk before the run continues.

    When a run has all its results, it calls :meth:`remove`.
    """

    def __init__(self, path: Path, fresh: bool = False) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            self.remove()
        elif path.exists():
            whole = path.read_bytes().rpartition(b"\n")[0]
            self.known = dict(json.loads(line) for line in whole.splitlines())
            path.write_bytes(whole + b"\n" if whole else b"")  # without a line that a kill cut short

    def put(self, name: str, result: Any) -> None:
        append_line(self.path, json.dumps([name, result]))
        self.known[name] = result

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
