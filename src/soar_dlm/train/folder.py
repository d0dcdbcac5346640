"""The folder of a run: a checkpoint that anyone can load, and what is needed to resume training."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from soar_dlm.errors import CheckpointError, InputFileError, SettingsError
from soar_dlm.models.layouts import save_tokenizer, save_weights, saved_names, write_json
from soar_dlm.train.recipe import Recipe

FREE_TO_CHANGE = ("about", "license", "report")
"""Settings that a resumed run may change: they do not affect the weights."""


@dataclass(frozen=True)
class RunFolder:
    """``path`` holds config.json, model.safetensors and tokenizer files; ``path/training`` the run itself.

    training/state.pt is replaced in one move, so that a kill leaves the old one or the new one. training/log.jsonl has
    one JSON object per line and is cut back to the state when a run resumes. Other files in ``path``, such as a
    generation_config.json with decoding defaults, are never touched.
    """

    path: Path

    @property
    def training(self) -> Path:
        return self.path / "training"

    @property
    def log(self) -> Path:
        return self.training / "log.jsonl"

    @property
    def state_file(self) -> Path:
        return self.training / "state.pt"

    @property
    def tokenizer_file(self) -> Path:
        return self.training / "tokenizer.json"

    def prepare(self, recipe: Recipe) -> None:
        """Make the folder, or check that its content came from the same recipe."""
        try:
            self.training.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputFileError(f"Cannot write to {str(self.path)!r}: {error.strerror or error}.") from error
        settings = self.training / "recipe.json"
        if settings.exists():
            self._same(json.loads(settings.read_text(encoding="utf-8")), recipe.as_dict())
        write_json(settings, recipe.as_dict())

    def _same(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        changed = sorted(
            name for name in _flat(before).keys() | _flat(now).keys() if _flat(before).get(name) != _flat(now).get(name)
        )
        binding = [name for name in changed if name.split(".")[0] not in FREE_TO_CHANGE]
        if binding:
            raise SettingsError(
                f"{str(self.path)!r} holds a run with another recipe: {', '.join(binding)} differ. "
                "Train into another folder, or restore the settings."
            )

    def state(self) -> dict[str, Any] | None:
        """The state to resume from, if there is one."""
        if not self.state_file.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.state_file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise CheckpointError(
                f"{str(self.state_file)!r} cannot be read ({error}). Delete it to train from the beginning."
            ) from error
        return state

    def save_state(self, state: dict[str, Any]) -> None:
        fresh = self.state_file.with_suffix(".new")
        torch.save(state, fresh)
        os.replace(fresh, self.state_file)

    def cut_log(self, step: int) -> None:
        """Drop what was logged after a step."""
        kept = [json.dumps(entry) for entry in self.entries() if entry.get("step", 0) <= step]
        self.log.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def entries(self) -> Iterator[dict[str, Any]]:
        """What was logged; an incomplete last line is skipped."""
        if self.log.exists():
            for line in self.log.read_text(encoding="utf-8").splitlines():
                try:
                    yield json.loads(line)
                except ValueError:
                    continue

    def append_log(self, entry: Mapping[str, Any]) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def write_checkpoint(self, recipe: Recipe, config: dict[str, Any], model: Any, tokenizer: Tokenizer) -> None:
        """Write config.json, model.safetensors and tokenizer files in the family's layout."""
        family = recipe.model.layout
        weights = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
        write_json(self.path / "config.json", config)
        save_weights(self.path, saved_names(family, weights))
        save_tokenizer(self.path, family, tokenizer)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat
