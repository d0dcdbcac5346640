"""The folder of a run: a checkpoint that anyone can load, and what is needed to resume training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from soar_dlm import files
from soar_dlm.errors import CheckpointError, InputFileError, SettingsError, told
from soar_dlm.models.layouts import save_tokenizer, save_weights, saved_names
from soar_dlm.strict_json import json_line, read_json
from soar_dlm.train.recipe import Recipe

FREE_TO_CHANGE = ("about", "license", "report")
"""Settings that a resumed run may change: they do not affect the weights."""


@dataclass(frozen=True)
class RunFolder:
    """``path`` holds config.json, model.safetensors and tokenizer files; ``path/training`` the run itself.

    Every file is replaced in one move, so that a kill leaves the old one or the new one. training/log.jsonl has one
    JSON object per line and is cut back to the state when a run resumes. Other files in ``path``, such as a
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

    @property
    def recipe_file(self) -> Path:
        return self.training / "recipe.json"

    def make(self) -> None:
        """Make the folder, if it is not there."""
        with files.explained("write to", self.path):
            self.training.mkdir(parents=True, exist_ok=True)

    def prepare(self, recipe: Recipe) -> None:
        """Make the folder ready for a run of this recipe; one with a run of another is refused."""
        self.make()
        for folder in (self.path, self.training):
            files.remove_leftovers(folder)
        self.check(recipe)
        files.write_json(self.recipe_file, recipe.as_dict())

    def check(self, recipe: Recipe) -> None:
        """Refuse a folder with a run of another recipe."""
        content = self._content(self.recipe_file)
        if content is None:
            return
        try:
            before = read_json(content)
        except InputFileError:
            before = None
        if not isinstance(before, dict):
            raise InputFileError(
                f"{str(self.recipe_file)!r} is damaged, so it is unknown what was trained here. Restore it from a "
                "copy, or train into another folder."
            )
        self._same(before, recipe.as_dict())

    def _content(self, file: Path) -> bytes | None:
        """What a file holds; None if it is not there."""
        with files.explained("read", file):
            try:
                return file.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def tokenizer(self) -> Tokenizer | None:
        """The run's tokenizer, if it has one yet."""
        content = self._content(self.tokenizer_file)
        if content is None:
            return None
        try:
            return Tokenizer.from_str(content.decode("utf-8"))
        except Exception as error:  # the tokenizers library raises no narrower class
            raise CheckpointError(
                f"{str(self.tokenizer_file)!r} cannot be read ({told(error)}). Delete it: the run makes the same "
                "one again."
            ) from error

    def _same(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        old, new = _flat(before), _flat(now)
        changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        binding = [name for name in changed if name.split(".")[0] not in FREE_TO_CHANGE]
        if binding:
            raise SettingsError(
                f"{str(self.path)!r} holds a run with another recipe: {', '.join(binding)} differ. "
                "Train into another folder, or restore the settings."
            )

    def state(self) -> dict[str, Any] | None:
        """The state to resume from, if there is one."""
        if self.stamp() is None:
            return None
        try:
            state: dict[str, Any] = torch.load(self.state_file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise self.broken_state(error) from error
        return state

    def broken_state(self, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{str(self.state_file)!r} cannot be read ({told(error)}). Delete it to train from the beginning."
        )

    def stamp(self) -> tuple[int, int] | None:
        """What changes whenever the state is saved."""
        try:
            found = self.state_file.stat()
        except (OSError, ValueError):
            return None
        return found.st_mtime_ns, found.st_ino

    def save_state(self, state: dict[str, Any]) -> None:
        with files.replacing(self.state_file) as fresh, fresh.open("wb") as file:
            try:
                torch.save(state, file)
            except RuntimeError as error:  # what the disk said, in other words
                raise InputFileError(f"Cannot write {self.state_file}: {error}.") from error

    def cut_log(self, step: int) -> None:
        """Drop what was logged after a step, and a torn last line; other lines stay. Step 0 leaves nothing."""
        kept = [line for line, entry in self._logged() if step and (entry is None or entry.get("step", 0) <= step)]
        files.write_text(self.log, "".join(line + "\n" for line in kept))

    def entries(self) -> Iterator[dict[str, Any]]:
        """What was logged; lines that cannot be read, such as a torn last one, are passed over."""
        return (entry for _, entry in self._logged() if entry is not None)

    def _logged(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """The whole lines of the log, and the entries that they are."""
        content = self._content(self.log) or b""
        for line in content.split(b"\n")[:-1]:
            yield line.decode("utf-8", errors="replace"), _entry(line)

    def append_log(self, entry: Mapping[str, Any]) -> None:
        files.append_line(self.log, json_line(entry))

    def write_checkpoint(self, recipe: Recipe, config: dict[str, Any], model: Any, tokenizer: Tokenizer) -> None:
        """Write config.json, model.safetensors and tokenizer files in the family's layout."""
        family = recipe.model.layout
        weights = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
        files.write_json(self.path / "config.json", config)
        save_weights(self.path, saved_names(family, weights))
        save_tokenizer(self.path, family, tokenizer)


def _entry(line: bytes) -> dict[str, Any] | None:
    """The entry on a line of the log; None if its numbers are not numbers."""
    try:
        entry = read_json(line)
    except InputFileError:
        return None
    if not isinstance(entry, dict) or not all(_is_number(entry.get(name, 0)) for name in ("step", "loss", "problems")):
        return None
    rates = entry.get("validation", {})
    return entry if isinstance(rates, dict) and all(map(_is_number, rates.values())) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat
