"""Puts the lm-eval hook next to the package, in wheels and in editable installations alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("soar_dlm_lm_eval.py", "soar_dlm_lm_eval.pth")


class LmEvalHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        files = {str(Path(self.root) / "lm_eval_hook" / name): name for name in FILES}
        build_data["force_include_editable" if version == "editable" else "force_include"].update(files)
