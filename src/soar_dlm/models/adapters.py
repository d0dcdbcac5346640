"""PEFT adapters: a folder with adapter_config.json, merged into the model it was trained on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import nn

from soar_dlm.errors import CheckpointError, MissingExtra, SoarError, WeightsMismatch, first_line, shown
from soar_dlm.models.families import Family
from soar_dlm.models.layouts import published_name
from soar_dlm.models.source import Source, read_object

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
"""What PEFT writes before every weight name."""


@dataclass(frozen=True)
class Adapter:
    """An adapter in ``folder`` and the model it belongs to: the ``base`` and, on the Hub, its ``revision``."""

    name: str
    folder: Path
    base: str
    revision: str | None


def find_adapter(source: Source) -> Adapter | None:
    """The adapter that a source consists of; None if it is a whole model."""
    path = source.find(CONFIG)
    if path is None:
        return None
    if any(Path(source.place).glob("model*.safetensors")):
        raise CheckpointError(
            f"{source.name!r} holds both a model and an adapter ({CONFIG}). Move them into separate folders and load "
            "the one you mean."
        )
    if source.find(WEIGHTS) is None:
        raise CheckpointError(f"The adapter {source.name!r} has no {WEIGHTS}; adapters are read from safetensors only.")
    config = read_object(path)
    base = config.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise CheckpointError(f"{CONFIG} of {source.name!r} names no base model; set base_model_name_or_path in it.")
    revision = config.get("revision")
    if revision is not None and not isinstance(revision, str):
        raise CheckpointError(f"{CONFIG} of {source.name!r} names the revision {shown(revision)}; it must be a string.")
    return Adapter(source.name, path.parent, base, revision)


def merge_adapter(adapter: Adapter, family: Family, model: Any) -> None:
    """Add an adapter to the weights of its base model, in place.

    LLaDA adapters name the modules of the published code (``model.transformer.blocks.0.q_proj``). PEFT gets a tree of
    the same modules under those names, so that names, patterns and settings of the adapter mean what they meant when
    it was trained.
    """
    try:
        import peft
    except ImportError as error:
        raise MissingExtra("peft", "peft", "Loading an adapter") from error
    if any(weight.is_meta for weight in model.parameters()):
        raise CheckpointError(
            f"The adapter {adapter.name!r} cannot be merged into a base model that is partly offloaded. Choose a "
            "device_map without offloading, or merge the adapter with PEFT and load the merged model."
        )
    weights = load_file(adapter.folder / WEIGHTS)
    tree = _published_tree(family, model) if _has_published_names(family, weights) else model
    try:
        config = peft.PeftConfig.from_pretrained(adapter.folder)
        if config.is_prompt_learning:
            raise CheckpointError("it adds tokens to the prompt, which a canvas has no room for")
        config.task_type, config.inference_mode = None, True
        tuned = peft.PeftModel(tree, config)
        expected = peft.get_peft_model_state_dict(tuned, save_embedding_layers=False)
        report = peft.set_peft_model_state_dict(tuned, weights)
        _check_names(sorted(expected.keys() - weights.keys()), report.unexpected_keys)
        tuned.merge_and_unload()
    except Exception as error:  # PEFT raises many kinds
        kind = type(error) if isinstance(error, SoarError) else CheckpointError
        raise kind(
            f"The adapter {adapter.name!r} cannot be merged into its base model {adapter.base!r}: {first_line(error)}."
        ) from error
    if tree is not model:
        _put_back(family, model, tree)


def _check_names(missing: list[str], unexpected: list[str]) -> None:
    for problem, names in (("lacks", missing), ("has no place for", unexpected)):
        if names:
            subject = "it" if problem == "lacks" else "the model"
            raise WeightsMismatch(f"{subject} {problem} {names[0]}" + f" and {len(names) - 1} more" * (len(names) > 1))


def _has_published_names(family: Family, weights: dict[str, Any]) -> bool:
    return any(re.match(pattern, name.removeprefix(PREFIX)) for pattern in family.weight_names for name in weights)


def _published_tree(family: Family, model: nn.Module) -> nn.Module:
    """The modules of a stock model, in a tree with the names of the published code."""
    root = nn.Module()
    for name, module in _with_weights(model):
        *path, last = _published(family, name).split(".")
        place = root
        for part in path:
            if part not in place._modules:
                place.add_module(part, nn.Module())
            place = place.get_submodule(part)
        place.add_module(last, module)
    return root


def _put_back(family: Family, model: nn.Module, tree: nn.Module) -> None:
    """Give the model the modules that PEFT replaced rather than changed."""
    for name, _ in _with_weights(model):
        model.set_submodule(name, tree.get_submodule(_published(family, name)))


def _with_weights(model: nn.Module) -> list[tuple[str, nn.Module]]:
    return [(name, module) for name, module in model.named_modules() if hasattr(module, "weight")]


def _published(family: Family, name: str) -> str:
    return published_name(family, f"{name}.weight").removesuffix(".weight")
