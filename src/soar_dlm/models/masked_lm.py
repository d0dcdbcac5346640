"""A masked language model as the engine sees it: rows of token ids in, logits at the positions asked for out."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions as BackboneOutput

from soar_dlm.models.stock import look_both_ways


@dataclass(frozen=True)
class ModelFacts:
    """What the engine must know about a model besides how to run it.

    ``end_ids`` end a text, the first of them is the EOS; empty if the model has none. ``filler_id`` fills what is left
    of a canvas that ended early. ``context`` is the longest row, None if there is no limit. A model that can change the
    length of its canvas has both an ``expand_id`` and a ``delete_id``, which may be its EOS.
    """

    vocab_size: int
    mask_id: int
    pad_id: int
    filler_id: int
    end_ids: tuple[int, ...] = ()
    context: int | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    expand_id: int | None = None
    delete_id: int | None = None


@dataclass(frozen=True)
class Rows:
    """A left-padded batch and the places in it whose logits are wanted.

    ``ids`` [R, L]; ``padding`` [R] counts the pads at the start of each row, None if there are none;
    ``row`` and ``column`` [P] name the places.
    """

    ids: Tensor
    padding: Tensor | None
    row: Tensor
    column: Tensor


class MaskedLM(Protocol):
    """Anything that can be decoded. The two halves are apart so that the head runs on few positions, in slices."""

    @property
    def facts(self) -> ModelFacts: ...

    @property
    def device(self) -> torch.device: ...

    def hidden(self, rows: Rows) -> Tensor:
        """The state from which the head predicts each place: [P, D]."""
        ...

    def head(self, hidden: Tensor, out: Tensor) -> None:
        """Write the logits of the places asked for into ``out``: [S, D] -> [S, V] in float32."""
        ...


class _GivenStates(nn.Module):
    """Stands where a model had its backbone, so that calling the model runs only what comes after it."""

    def forward(self, *ignored: Any, inputs_embeds: Tensor, **options: Any) -> BackboneOutput:
        return BackboneOutput(last_hidden_state=inputs_embeds)


class TransformersLM:
    """A stock transformers model, cut into backbone and head.

    1. The backbone runs all rows with a padding mask and position ids that start at 0 after the padding.
    2. ``predicts_next`` models (Dream) say at position i what comes at i + 1: the state is taken one place to the left,
       at the first real token from its own place. This is the only spot that knows of the shift.
    3. ``full_attention`` promises that every layer looks at the whole row, so that one mask serves all of them.
    4. A model whose predictions padding changes (FNet mixes it in) has ``takes_padding`` set to False and is run
       once for each length of row.
    5. The head is whatever the model computes from the backbone's states, run on the places asked for alone.
    """

    takes_padding = True

    def __init__(
        self, model: Any, facts: ModelFacts, *, predicts_next: bool = False, full_attention: bool = False
    ) -> None:
        model.eval()
        look_both_ways(model)
        self.backbone = model.base_model
        setattr(model, model.base_model_prefix, _GivenStates())
        self._rest = model
        self._matrix = lone_matrix(model)
        self._facts = facts
        self._predicts_next = predicts_next
        self._prepares_mask = full_attention and model.config._attn_implementation == "sdpa"
        self._takes_positions = "position_ids" in inspect.signature(self.backbone.forward).parameters
        self._first_position = first_position(self.backbone)

    @property
    def facts(self) -> ModelFacts:
        return self._facts

    @property
    def device(self) -> torch.device:
        """Where rows are put; layers that are offloaded (on "meta" until they run) are passed over."""
        places = (parameter.device for parameter in self.backbone.parameters())
        return next((device for device in places if device.type != "meta"), torch.device("cpu"))

    @torch.inference_mode()
    def hidden(self, rows: Rows) -> Tensor:
        if rows.padding is None or self.takes_padding:
            return self._states(rows)
        parts = [self._states_of_length(rows, padding) for padding in sorted(set(rows.padding.tolist()))]
        states = parts[0][1].new_empty(len(rows.row), parts[0][1].shape[-1])
        for places, part in parts:
            states[places] = part
        return states

    def _states_of_length(self, rows: Rows, padding: int) -> tuple[Tensor, Tensor]:
        """The places asked for in the rows with so many pads, and their states, run without the padding."""
        assert rows.padding is not None
        chosen = rows.padding == padding
        places = chosen[rows.row].nonzero().squeeze(1)
        row = (chosen.cumsum(0) - 1)[rows.row[places]]
        return places, self._states(Rows(rows.ids[chosen, padding:], None, row, rows.column[places] - padding))

    def _states(self, rows: Rows) -> Tensor:
        ids, column, padding = rows.ids, rows.column, rows.padding
        length = ids.shape[1]
        places = torch.arange(length, device=ids.device).expand(ids.shape)
        inputs: dict[str, Tensor] = {}
        if padding is None:
            padding = torch.zeros_like(ids[:, 0])
        elif self._takes_positions:
            inputs["attention_mask"] = self._mask(places >= padding.unsqueeze(1))
        else:  # the model counts positions from the left edge itself: give it the padding on the right
            ids = ids.gather(1, (places + padding.unsqueeze(1)) % length)
            inputs["attention_mask"] = (places < length - padding.unsqueeze(1)).long()
            column, padding = column - padding[rows.row], torch.zeros_like(padding)
        if self._takes_positions:
            inputs["position_ids"] = (places - padding.unsqueeze(1)).clamp(min=0) + self._first_position
        states: Tensor = self.backbone(input_ids=ids, **inputs)[0]
        if self._predicts_next:
            column = torch.maximum(column - 1, padding[rows.row])
        return states[rows.row.to(states.device), column.to(states.device)]

    def _mask(self, real: Tensor) -> Tensor:
        """The padding mask [R, L] as the model takes it.

        Given as a vector per row, transformers looks at its values to see whether it is needed, for which an
        accelerator has to wait; a prepared one [R, 1, L, L] is used as it is.
        """
        if self._prepares_mask:
            return real[:, None, None, :].expand(-1, 1, real.shape[1], -1)
        return real.long()

    @torch.inference_mode()
    def head(self, hidden: Tensor, out: Tensor) -> None:
        if self._matrix is not None and (self._matrix.dtype, self._matrix.device) == (out.dtype, out.device):
            torch.mm(hidden, self._matrix.T, out=out)
        else:
            out.copy_(self.logits(hidden))

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """What the model itself computes from its backbone's states: [S, D] -> [S, V]."""
        logits: Tensor = self._rest(inputs_embeds=hidden.unsqueeze(0)).logits
        return logits.squeeze(0)


def lone_matrix(head: nn.Module) -> Tensor | None:
    """The weight of a head that is one plain linear layer without bias and nothing else; None for any other."""
    layers = [child for child in head.children() if not isinstance(child, _GivenStates)]
    if len(layers) != 1 or type(layers[0]) is not nn.Linear or getattr(layers[0], "bias", None) is not None:
        return None
    weight = layers[0].get_parameter("weight")
    return weight if type(weight) is nn.Parameter else None  # a quantized one has a type of its own


def first_position(backbone: Any) -> int:
    """The position id of a row's first token: 0, or past the padding index where the model counts as RoBERTa does."""
    embeddings = getattr(backbone, "embeddings", None)
    counter = "create_position_ids_from_input_ids"
    counts_past_padding = hasattr(embeddings, counter) or hasattr(sys.modules[type(embeddings).__module__], counter)
    return int(embeddings.padding_idx) + 1 if embeddings is not None and counts_past_padding else 0
