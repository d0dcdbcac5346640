"""One model over several processes, each with a part of every layer; the first leads and the others follow."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import gcd
from threading import Lock
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from soar_dlm.errors import SettingsError
from soar_dlm.models.families import MASKED_LM
from soar_dlm.models.masked_lm import Ints, ModelFacts, Past, Rows, Stored
from soar_dlm.models.reading import Found, quiet, readable_errors
from soar_dlm.models.running import TransformersLM
from soar_dlm.models.source import Source
from soar_dlm.models.sums import Sums
from soar_dlm.models.team import Part, Team

T = TypeVar("T")

HEAD, EMBEDDINGS = "lm_head", "model.embed_tokens"
WHOLE = (HEAD, EMBEDDINGS)
"""What transformers would split besides the layers. The head runs on few positions, and what follows needs all of its
logits in one place; split embeddings would cost a sum to save looking up a row."""


@dataclass(frozen=True, eq=False)
class Call:
    """A forward that all processes run, without the places that only the leader reads.

    ``ids`` [R, L] and ``padding`` [R] are those of :class:`Rows`, ``places`` and ``keep`` those of :class:`Past`, None
    for a forward over nothing. What is stored has a number in all processes: ``stored`` names it and how many of its
    columns are used, ``names`` what is stored now. What is ``dropped`` is not used again.
    """

    ids: Ints
    padding: Ints | None
    places: Sequence[Ints] | None = None
    keep: Sequence[Ints | None] = ()
    stored: Sequence[tuple[int, int] | None] = ()
    names: Sequence[int | None] = ()
    dropped: Sequence[int] = ()


class _Name:
    """The number of something that is stored in all processes; gone when nothing on the leader builds on it."""

    def __init__(self, number: int) -> None:
        self.number = number


class LeadingLM(TransformersLM):
    """The model as the engine sees it, in the process that leads.

    1. Before each forward the others are told what to run, and each runs it on its own part of the weights and of the
       keys and values. The states are those of the whole model in every process.
    2. The head is not split: it runs here only, and so does everything that follows.
    3. What is stored goes in the other processes, before their next forward, when it is gone here.
    4. Calls of several threads run one after the other. Where a process fails, its error is raised here once all have
       come to an end; where one is lost, the model is closed.
    """

    def __init__(self, model: Any, facts: ModelFacts, team: Team, *, predicts_next: bool = False) -> None:
        super().__init__(model, facts, predicts_next=predicts_next, frozen=True)
        self._team, self._sums = team, Sums(self.backbone)
        self._one_by_one = Lock()
        self._numbers = count(1)
        self._dropped: deque[int] = deque()

    def hidden(self, rows: Rows) -> Tensor:
        return self._together(_call(rows), lambda: super(LeadingLM, self).hidden(rows))

    def hidden_over(self, rows: Rows, past: Past) -> tuple[Tensor, list[Stored | None]]:
        names = [None if keep is None else _Name(next(self._numbers)) for keep in past.keep]
        for name in names:
            if name is not None:
                weakref.finalize(name, self._dropped.append, name.number).atexit = False
        call = replace(
            _call(rows),
            places=past.places,
            keep=past.keep,
            stored=[None if stored is None else (stored.origin.number, stored.size) for stored in past.stored],
            names=[None if name is None else name.number for name in names],
        )
        states, kept = self._together(call, lambda: super(LeadingLM, self).hidden_over(rows, past))
        return states, [
            None if own is None else replace(own, origin=name) for own, name in zip(kept, names, strict=True)
        ]

    def _together(self, call: Call, run: Callable[[], T]) -> T:
        with self._one_by_one:
            dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
            with self._team.told(replace(call, dropped=dropped)), self._sums.completed(*call.ids.shape):
                return run()

    @property
    def followers(self) -> list[int]:
        """The ids of the processes that follow."""
        return self._team.pids

    def compile(self) -> None:
        raise SettingsError("A model that is split by tensor_parallel cannot be compiled. Leave compile out.")

    def close(self) -> None:
        self._team.close()


class FollowingLM:
    """The model in a process that follows: it runs what it is told, on its own part."""

    def __init__(self, model: TransformersLM) -> None:
        self._model, self._sums = model, Sums(model.backbone)
        self._stored: dict[int, Stored] = {}

    def run(self, call: Call) -> None:
        for dropped in call.dropped:
            self._stored.pop(dropped, None)  # a forward that failed has stored nothing
        with self._sums.completed(*call.ids.shape):
            rows = self._rows(call)
            if call.places is None:
                self._model.hidden(rows)
                return
            stored = [None if one is None else self._stored[one[0]].first(one[1]) for one in call.stored]
            _, kept = self._model.hidden_over(rows, Past(call.places, stored, call.keep))
        for number, own in zip(call.names, kept, strict=True):
            if number is not None and own is not None:
                self._stored[number] = own

    def _rows(self, call: Call) -> Rows:
        device = self._model.device
        padding = None if call.padding is None else torch.from_numpy(call.padding).to(device)
        nowhere = torch.empty(0, dtype=torch.int64, device=device)
        return Rows(torch.from_numpy(call.ids).to(device), padding, nowhere, nowhere)


def _call(rows: Rows) -> Call:
    return Call(rows.ids.cpu().numpy(), None if rows.padding is None else rows.padding.cpu().numpy())


def check_split(found: Found, processes: int) -> None:
    """Refuse what cannot be split, from config.json alone."""
    name, config = found.source.name, found.config
    if found.family is MASKED_LM:
        raise SettingsError(
            f"tensor_parallel splits LLaDA and Dream, and {name!r} is neither. Leave it out, or use device_map='auto'."
        )
    if "quantization_config" in found.raw:
        raise SettingsError(f"{name!r} is quantized, and tensor_parallel splits plain weights only. Leave it out.")
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    shares = gcd(heads, groups)
    if shares % processes:
        choices = ", ".join(str(number) for number in range(2, shares + 1) if shares % number == 0)
        raise SettingsError(
            f"{name!r} has {heads} attention heads, and {groups} of keys and values, of which {processes} processes "
            f"cannot have equal shares. tensor_parallel can be {choices or '1 only'}."
        )


def load_split(found: Found, placement: Mapping[str, Any], processes: int) -> tuple[Any, Team]:
    """The leader's part of a model, and the processes that have the others."""
    check_split(found, processes)
    access = dict(found.source.access)
    if (commit := found.source.commit) is not None:
        access["revision"] = commit
    with Team.loading(processes, found.source.name, placement, access) as team:
        return found.load(team.part.placed(WHOLE)), team


def find_part(part: Part) -> Callable[[], FollowingLM]:
    """Find the checkpoint of a part; what is returned loads it, and drops the head."""
    with readable_errors(part.name):
        found = Found.of(Source.named(part.name, part.access))

    def load() -> FollowingLM:
        with readable_errors(part.name), quiet(found.source.place):
            model = found.load(part.placed(WHOLE))
            model.set_submodule(HEAD, nn.Identity())
            return FollowingLM(TransformersLM(model, ModelFacts(1, 0, 0, 0)))

    return load
