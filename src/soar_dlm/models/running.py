"""Models in memory, run through the one interface that the engine knows."""

from __future__ import annotations

import copy
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions as BackboneOutput

from soar_dlm.errors import SettingsError, first_line
from soar_dlm.models.masked_lm import Ints, ModelFacts, Past, Rows, Stored, output_column
from soar_dlm.models.packed import PackedHead, pack_layers
from soar_dlm.models.stock import has_full_attention, is_own_class, look_both_ways
from soar_dlm.models.stored import Joining, longest_stored

ROUNDING = 0.1
"""How far states may be off, by the largest of them, where a forward is the same but for rounding: int8 activations
round by some percent. A forward that does not see what is stored is off by more than the states themselves."""


def device_of(module: nn.Module) -> torch.device:
    """Where a model wants its rows; offloaded weights, which are on "meta" until they are used, do not count."""
    devices = (parameter.device for parameter in module.parameters())
    return next((device for device in devices if device.type != "meta"), torch.device("cpu"))


class LoadedLM(ABC):
    """What all ways of running a PyTorch model share.

    A model with ``takes_padding`` False gets rows of one length at a time, without padding.
    """

    takes_padding = True

    def __init__(self, module: nn.Module, facts: ModelFacts, predicts_next: bool) -> None:
        self._module, self._facts, self._predicts_next = module, facts, predicts_next

    @property
    def facts(self) -> ModelFacts:
        return self._facts

    @property
    def device(self) -> torch.device:
        return device_of(self._module)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the first weights, the embeddings."""
        return next((parameter.dtype for parameter in self._module.parameters()), torch.float32)

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
        """The places in rows with this many pads, and their states, computed without the padding."""
        assert rows.padding is not None
        chosen = rows.padding == padding
        places = chosen[rows.row].nonzero().squeeze(1)
        row = (chosen.cumsum(0) - 1)[rows.row[places]]
        return places, self._states(Rows(rows.ids[chosen, padding:], None, row, rows.column[places] - padding))

    @abstractmethod
    def _states(self, rows: Rows) -> Tensor:
        """As :meth:`hidden`, for rows that the model can run together."""

    @abstractmethod
    def logits(self, hidden: Tensor) -> Tensor:
        """The logits that the model computes from these states: [S, D] -> [S, V]."""

    def head(self, hidden: Tensor, out: Tensor) -> None:
        out.copy_(self.logits(hidden))

    def close(self) -> None:  # noqa: B027
        """End what runs besides this process: nothing, unless the model is split over several."""

    def compile(self) -> None:
        """Run through torch.compile from now on."""
        raise SettingsError("This model runs by a forward of its own; compile that one before you load it.")


class WholeModelLM(LoadedLM):
    """A model with a forward of its own, of which only this is known: it takes ``input_ids`` and returns ``.logits``.

    It runs whole, head included, on all positions; its "states" are the logits at the requested places. Rows are run
    one length at a time, because nothing is known about how it treats padding.
    """

    takes_padding = False

    def __init__(self, model: nn.Module, facts: ModelFacts, *, predicts_next: bool = False) -> None:
        super().__init__(model, facts, predicts_next)
        self._model = model

    def _states(self, rows: Rows) -> Tensor:
        logits = run_whole(self._model, rows.ids)
        column = output_column(rows.column, 0, self._predicts_next)
        return logits[rows.row.to(logits.device), column.to(logits.device)]

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden


def run_whole(model: nn.Module, ids: Tensor) -> Tensor:
    """The logits of rows without padding: [R, L] -> [R, L, V]."""
    logits: Tensor = model(input_ids=ids, **_without_cache(model)).logits
    return logits


class TransformersLM(LoadedLM):
    """A class of transformers itself, cut into backbone and head.

    1. The backbone runs all rows with a padding mask and position ids that start at 0 after the padding.
    2. The head is whatever the model computes from the backbone's states, run on the requested places only.

    The model is put into evaluation mode and made to attend in both directions; otherwise it stays as it was. If it is
    ``frozen``, nobody else uses its weights, and they are laid out anew where that is faster.
    """

    def __init__(self, model: Any, facts: ModelFacts, *, predicts_next: bool = False, frozen: bool = False) -> None:
        model.eval()
        look_both_ways(model)
        self.backbone = model.base_model
        self._forward: Callable[..., Any] = self._first_forward if frozen and is_own_class(model) else self.backbone
        super().__init__(self.backbone, facts, predicts_next)
        self._rest = _without_backbone(model)
        self._matrix = lone_matrix(self._rest) if is_own_class(model) else None
        self._frozen = frozen
        self._prepares_mask = has_full_attention(model) and model.config._attn_implementation == "sdpa"
        self._takes_positions = _takes(self.backbone, "position_ids")
        self._first_position = first_position(self.backbone)
        self._options = _without_cache(self.backbone)

    def _states(self, rows: Rows) -> Tensor:
        ids, column, padding = rows.ids, rows.column, rows.padding
        length = ids.shape[1]
        places = torch.arange(length, device=ids.device).expand(ids.shape)
        inputs: dict[str, Tensor] = {}
        if padding is None:
            padding = torch.zeros_like(ids[:, 0])
        elif self._takes_positions:
            inputs["attention_mask"] = self._mask(places >= padding.unsqueeze(1), length)
        else:  # the model counts positions from the left edge itself: give it the padding on the right
            ids = ids.gather(1, (places + padding.unsqueeze(1)) % length)
            inputs["attention_mask"] = (places < length - padding.unsqueeze(1)).long()
            column, padding = column - padding[rows.row], torch.zeros_like(padding)
        if self._takes_positions:
            inputs["position_ids"] = (places - padding.unsqueeze(1)).clamp(min=0) + self._first_position
        return self._run(ids, inputs, rows.row, column, padding)

    def compile(self) -> None:
        self._forward = torch.compile(self.backbone, dynamic=True)
        row = np.full(8, self._facts.mask_id, dtype=np.int64)
        try:
            self.hidden(Rows.packed([row], [np.arange(1)], self._facts.pad_id, self.device))
        except Exception as error:  # there is no compiler, or it cannot compile this model
            raise SettingsError(f"The model cannot be compiled: {first_line(error)}. Leave compile out.") from error

    def _first_forward(self, **inputs: Any) -> Any:
        """Not before it is known that the model will not be compiled: compilers take plain layers."""
        pack_layers(self.backbone)
        self._forward = self.backbone
        return self._forward(**inputs)

    def _run(self, ids: Tensor, inputs: Mapping[str, Any], row: Tensor, column: Tensor, padding: Tensor) -> Tensor:
        """The states from which these places are predicted: [P, D]."""
        states: Tensor = self._forward(input_ids=ids, **inputs, **self._options)[0]
        column = output_column(column, padding[row], self._predicts_next)
        return states[row.to(states.device), column.to(states.device)]

    def _mask(self, real: Tensor, queries: int) -> Tensor:
        """The padding mask [R, L] as the model takes it.

        Given one vector per row, transformers looks at its values to see whether it is needed, which makes an
        accelerator wait; a prepared mask [R, 1, queries, L] is used as it is, by every layer.
        """
        if self._prepares_mask:
            return real[:, None, None, :].expand(-1, 1, queries, -1)
        return real.long()

    @cached_property
    def column_bytes(self) -> int | None:
        """What storing a column takes; None unless a trial shows that running over stored columns changes nothing."""
        layers = getattr(self.backbone.config, "layer_types", None) or []
        kernel = self.backbone.config._attn_implementation
        plain = kernel in ("sdpa", "eager") and all(kind == "full_attention" for kind in layers)
        if not (plain and self._takes_positions and _takes(self.backbone, "past_key_values")):
            return None
        try:
            return self._tried_storing()
        except Exception:  # a forward that is made for other caches may raise anything
            return None

    def _tried_storing(self) -> int | None:
        """Store a short row, run two columns of it over the others, and compare."""
        canvas, inside = np.arange(6) % self._facts.vocab_size, np.array([2, 3])
        run = self.needed(inside)
        others = np.setdiff1d(np.arange(canvas.size), run)
        places = np.searchsorted(run, inside)
        rows = Rows.packed([canvas], [inside], self._facts.pad_id, self.device)
        whole, (stored,) = self.hidden_over(rows, Past([np.arange(canvas.size)], [None], [others]))
        assert stored is not None
        window = Rows.packed([canvas[run]], [places], self._facts.pad_id, self.device)
        part, _ = self.hidden_over(window, Past([run], [stored], [None]))
        plain = self.hidden(rows)
        if max((part - plain).abs().max(), (whole - plain).abs().max()) > ROUNDING * plain.abs().max():
            return None
        return sum(part.element_size() * part[:, 0].numel() for pair in stored.layers for part in pair)

    def needed(self, columns: Ints) -> Ints:
        if not self._predicts_next:
            return columns
        both: Ints = np.union1d(columns, columns - 1)
        return both[both >= 0]

    @torch.inference_mode()
    def hidden_over(self, rows: Rows, past: Past) -> tuple[Tensor, list[Stored | None]]:
        count, width = rows.ids.shape
        device = rows.ids.device
        padding = torch.zeros(count, dtype=torch.int64, device=device) if rows.padding is None else rows.padding
        pads = [width - own.size for own in past.places]
        places = np.zeros((count, width), dtype=np.int64)
        for row, own in enumerate(past.places):
            places[row, pads[row] :] = own
        inputs: dict[str, Any] = {
            "position_ids": torch.from_numpy(places).to(device) + self._first_position,
            "past_key_values": (cache := Joining(self.backbone.config.num_hidden_layers, past, pads)),
        }
        longest = longest_stored(past)
        unused = [longest - (0 if stored is None else stored.size) for stored in past.stored]
        if any(pads) or any(unused):
            columns = torch.arange(longest + width, device=device)
            starts = torch.tensor(unused, device=device).unsqueeze(1)
            real = torch.where(columns < longest, columns >= starts, columns - longest >= padding.unsqueeze(1))
            inputs["attention_mask"] = self._mask(real, width)
        return self._run(rows.ids, inputs, rows.row, rows.column, padding), cache.kept()

    @cached_property
    def _packed(self) -> PackedHead | None:
        return PackedHead.of(self._matrix) if self._frozen and self._matrix is not None else None

    @torch.inference_mode()
    def head(self, hidden: Tensor, out: Tensor) -> None:
        if self._packed is not None:
            self._packed.multiply(hidden, out)
        elif self._matrix is not None and (self._matrix.dtype, self._matrix.device) == (out.dtype, out.device):
            torch.mm(hidden, self._matrix.T, out=out)
        else:
            super().head(hidden, out)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self._rest(inputs_embeds=hidden.unsqueeze(0)).logits
        return logits.squeeze(0)


class _GivenStates(nn.Module):
    """Takes the place of a model's backbone, so that calling the model runs only what comes after it."""

    def forward(self, *ignored: Any, inputs_embeds: Tensor, **options: Any) -> BackboneOutput:
        return BackboneOutput(last_hidden_state=inputs_embeds)


def _without_backbone(model: Any) -> Any:
    """A copy of the model that shares all modules but has none in place of its backbone; the model keeps its own.

    A forward set on the object itself (by accelerate's hooks, or a compiled one) is bound to the original; the copy
    goes back to the forward of its class. The hooks of the modules inside still move data between devices.
    """
    rest = copy.copy(model)
    rest._modules = {**model._modules, model.base_model_prefix: _GivenStates()}
    rest.__dict__.pop("forward", None)
    return rest


def _takes(module: nn.Module, argument: str) -> bool:
    return argument in inspect.signature(module.forward).parameters


def _without_cache(module: nn.Module) -> dict[str, Any]:
    """The argument that keeps a forward from collecting keys and values nobody will use, where it has one."""
    return {"use_cache": False} if _takes(module, "use_cache") else {}


def lone_matrix(rest: nn.Module) -> Tensor | None:
    """The weight of a head that is one plain linear layer without bias and nothing else; None for any other."""
    layers = [child for child in rest.children() if not isinstance(child, _GivenStates)]
    if len(layers) != 1 or type(layers[0]) is not nn.Linear or getattr(layers[0], "bias", None) is not None:
        return None
    weight = layers[0].get_parameter("weight")
    return weight if type(weight) is nn.Parameter else None  # a quantized one has its own type


def first_position(backbone: Any) -> int:
    """The position id of a row's first token: 0, or past the padding index in models that count as RoBERTa does."""
    embeddings = getattr(backbone, "embeddings", None)
    counter = "create_position_ids_from_input_ids"
    counts_past_padding = hasattr(embeddings, counter) or hasattr(sys.modules[type(embeddings).__module__], counter)
    return int(embeddings.padding_idx) + 1 if embeddings is not None and counts_past_padding else 0
