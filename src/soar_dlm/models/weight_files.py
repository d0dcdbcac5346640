"""The files of a checkpoint's weights, looked at before any of them is opened as weights.

1. Weights are safetensors and nothing else: what an index names must end in ``.safetensors``.
2. They are in the folder of the index itself: plain names, no path, and no link that leads out of the folder. (The
   Hub's cache keeps a snapshot as links into a folder ``blobs`` beside it; those are the checkpoint's own.)
3. config.json cannot ask for far more memory than its weights take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from soar_dlm.errors import CheckpointError, WeightsMismatch, shown, told
from soar_dlm.models.source import Source, read_object

ONE_FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
SLACK = 2**20
"""Numbers that a model may have beyond twice those in its files: tied weights are in a file once."""


def check_index(source: Source) -> None:
    """Refuse an index that names anything but safetensors in its own folder."""
    path = source.find(INDEX)
    if path is None:
        return
    content = read_object(path)
    names = content.get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise CheckpointError(f'{INDEX} of {source.name!r} must have a "weight_map" from weights to files.')
    if not isinstance(content.get("metadata"), dict):
        raise CheckpointError(f'{INDEX} of {source.name!r} must have an object "metadata".')
    for name in sorted(set(names.values())):
        if not name.endswith(".safetensors") or name == ".safetensors" or not _is_plain(name):
            raise CheckpointError(
                f"{INDEX} of {source.name!r} names {shown(name)}. Weights are read only from files that end in "
                ".safetensors and lie in the same folder as the index."
            )
        if Path(source.place).is_dir():
            _check_file(source, name)


def _is_plain(name: str) -> bool:
    return not any(sign in name for sign in ("/", "\\", "\0", ":")) and name == name.strip()


def _check_file(source: Source, name: str) -> None:
    path = Path(source.place) / name
    if not path.is_file():
        raise CheckpointError(f"{INDEX} of {source.name!r} names {name!r}, which is not a file in that folder.")
    if not _is_own(path):
        raise CheckpointError(
            f"{name!r} of {source.name!r} is a link out of the folder. Put the file itself there, or load the folder "
            "that it is in."
        )


def _is_own(path: Path) -> bool:
    """Whether a file lies in its folder, or in the blobs of the Hub cache that the folder is a snapshot of."""
    folder, target = path.parent.resolve(), path.resolve()
    if target.parent == folder:
        return True
    return folder.parent.name == "snapshots" and target.parent == folder.parent.parent / "blobs"


def check_size(source: Source, model_class: Any, config: Any) -> None:
    """Refuse a config whose model is far larger than the weights in its folder, before memory is asked for."""
    held = _numbers(source)
    if held is None or getattr(config, "quantization_config", None) is not None:
        return
    layers = getattr(config, "num_hidden_layers", None)
    if isinstance(layers, int) and layers > len(held):
        raise WeightsMismatch(
            f"config.json of {source.name!r} has {layers} layers; its files hold {len(held)} weights, too few for that."
        )
    with torch.device("meta"):
        make = getattr(model_class, "from_config", None) or model_class
        model = make(config)
    wanted, there = sum(weight.numel() for weight in model.parameters()), sum(held.values())
    if wanted > 2 * there + SLACK:
        raise WeightsMismatch(
            f"config.json of {source.name!r} describes a model of {wanted} parameters; its files hold {there}. "
            "Check that they belong together."
        )


def _numbers(source: Source) -> Mapping[str, int] | None:
    """How many numbers each weight in a folder has, by the headers of the files; None if the folder has none."""
    folder = Path(source.place)
    if not folder.is_dir():
        return None
    one, found = folder / ONE_FILE, {}
    files = [one] if one.is_file() else sorted(folder.glob("*.safetensors"))
    for file in files:
        try:
            with safe_open(file, framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118
                    found[name] = math.prod(weights.get_slice(name).get_shape())
        except Exception as error:  # Rust's own errors
            raise CheckpointError(f"Could not load {source.name!r}: {file.name} is damaged: {told(error)}.") from error
    return found or None
