"""What loading gives: a model that runs, and everything that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from soar_dlm.models.defaults import DecodingDefaults
from soar_dlm.models.families import Family
from soar_dlm.models.running import LoadedLM
from soar_dlm.models.text import Text


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model. ``text`` is None without a tokenizer; ``revision`` is the commit of a model from the Hub."""

    name: str
    family: Family
    model: LoadedLM
    text: Text | None
    revision: str | None = None
    defaults: DecodingDefaults = field(default_factory=DecodingDefaults)
