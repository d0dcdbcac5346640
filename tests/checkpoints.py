"""Changing a checkpoint on disk, to see what loading makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file


def edit_json(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text())
    for key, value in changes.items():
        if value is ...:
            content.pop(key, None)
        else:
            content[key] = value
    path.write_text(json.dumps(content))


def edit_weights(folder: Path, change: Any) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
