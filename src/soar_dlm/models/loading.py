"""From a name to a running model: a Hub id, a folder, an adapter, an embedded model; or from a model in memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, TypedDict, Union, cast

import torch
import transformers
from torch import nn
from typing_extensions import Unpack

from soar_dlm import checks
from soar_dlm.errors import (
    CheckpointError,
    MissingExtra,
    SettingsError,
    SoarError,
    shown,
    told,
)
from soar_dlm.models.adapters import CONFIG as ADAPTER_CONFIG
from soar_dlm.models.adapters import Adapter, find_adapter, merge_adapter
from soar_dlm.models.checkpoint import Checkpoint
from soar_dlm.models.defaults import FILE, SECTION, DecodingDefaults, read_defaults
from soar_dlm.models.facts import read_facts
from soar_dlm.models.families import FAMILIES, MASKED_LM, Family
from soar_dlm.models.objects import checkpoint_of
from soar_dlm.models.parallel import LeadingLM, load_split
from soar_dlm.models.probes import padding_is_harmless
from soar_dlm.models.reading import Found, quiet, readable_errors
from soar_dlm.models.running import TransformersLM
from soar_dlm.models.source import Source
from soar_dlm.models.team import check_possible
from soar_dlm.models.text import Text

__all__ = ["AnyModel", "Checkpoint", "LoadOptions", "load_checkpoint", "usable_device"]

AnyModel = Union[str, "os.PathLike[str]", nn.Module]
"""A Hub id, a folder, an embedded name, or a model object."""

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
MOST_PROCESSES = 1024
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
)


class FileOptions(TypedDict, total=False):
    """How weights are found and placed; they make no sense for a model that is in memory already."""

    device_map: Any
    tensor_parallel: int | None
    quantization_config: Any
    attn_implementation: str | None
    revision: str | None
    token: str | bool | None
    cache_dir: str | os.PathLike[str] | None
    local_files_only: bool | None


class LoadOptions(FileOptions, total=False):
    """All options of loading besides device and dtype."""

    tokenizer: Any
    family: str | None
    mask_token_id: int | None
    trust_remote_code: bool | None
    compile: bool | None


def load_checkpoint(
    model: AnyModel,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    tokenizer: Any = None,
    family: str | None = None,
    mask_token_id: int | None = None,
    trust_remote_code: bool | None = None,
    compile: bool | None = None,
    **options: Unpack[FileOptions],
) -> Checkpoint:
    """A checkpoint by name, or a model object as a checkpoint; see :func:`soar_dlm.load` for the options."""
    if compile and options.get("tensor_parallel") not in (None, 1):
        raise SettingsError("A model that is split by tensor_parallel cannot be compiled. Leave compile out.")
    checkpoint = _checkpoint(model, device, dtype, tokenizer, family, mask_token_id, trust_remote_code, options)
    if compile is not None and checks.true_or_false("compile", compile):
        checkpoint.model.compile()
    return checkpoint


def _checkpoint(
    model: AnyModel,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    tokenizer: Any,
    family: str | None,
    mask_token_id: int | None,
    trust_remote_code: bool | None,
    options: FileOptions,
) -> Checkpoint:
    if trust_remote_code is not None and checks.true_or_false("trust_remote_code", trust_remote_code):
        warnings.warn(
            "trust_remote_code is not needed: the model runs as a class of transformers itself, and no code from a "
            "checkpoint is ever run.",
            UserWarning,
            stacklevel=5,  # past load() and its door
        )
    if tokenizer is not None and not hasattr(tokenizer, "get_vocab"):
        raise SettingsError(f"tokenizer must be a transformers tokenizer, not {shown(tokenizer)}.")
    if mask_token_id is not None:
        mask_token_id = checks.whole_number("mask_token_id", mask_token_id, 0)
    if family is not None:
        checks.known_name("family", family, [known.name for known in FAMILIES])
    if isinstance(model, (str, os.PathLike)):
        if family is not None:
            raise SettingsError("family is for model objects; the family of a checkpoint is read from its config.json.")
        name = checks.string("The name of a model", os.fspath(model))
        return _from_files(name, device, dtype, tokenizer, mask_token_id, options)
    if not isinstance(model, nn.Module):
        raise SettingsError(
            f"load takes a Hub id, a folder, the name of an embedded model or a transformers model, not {shown(model)}."
        )
    about_files = {"device": device, "dtype": dtype, **options}
    given = [name for name, value in about_files.items() if value is not None]
    if given:
        raise SettingsError(
            f"{', '.join(given)}: this model is in memory already. Leave the option out, and set it where you load the "
            "model."
        )
    return checkpoint_of(model, tokenizer=tokenizer, family=family, mask_token_id=mask_token_id)


def _from_files(
    name: str,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    tokenizer: Any,
    mask_token_id: int | None,
    options: FileOptions,
) -> Checkpoint:
    """Read a checkpoint: safetensors only, stock classes only, no remote code. Options go to transformers as given."""
    _check_kinds(options)
    processes = _processes(device, options)
    placement, target = _placement(device, dtype, options)
    access = _access(options)
    with readable_errors(name):
        source = Source.named(name, access)
        adapter = find_adapter(source)
        if adapter is not None and processes > 1:
            raise SettingsError(
                f"{name!r} is an adapter, and tensor_parallel splits whole models only. Merge it with PEFT and load "
                "the merged model."
            )
        base = source if adapter is None else _base(adapter, access)
    with readable_errors(name), quiet(base.place):
        found = Found.of(base)
        raw, family = found.raw, found.family
        model, team = load_split(found, placement, processes) if processes > 1 else (found.load(placement), None)
        if adapter is not None:
            merge_adapter(adapter, family, model)
        if target is not None and "quantization_config" not in raw:
            model.to(target)
        if tokenizer is None:
            tokenizer = _tokenizer(source, family) or (_tokenizer(base, family) if base is not source else None)
        defaults = _defaults(source) or _defaults(base) or DecodingDefaults()
        facts = read_facts(
            name,
            family,
            raw,
            model,
            tokenizer,
            mask_token_id,
            vocab_size=model.config.vocab_size,
            thresholds=defaults.thresholds,
        )
        if team is None:
            running = TransformersLM(model, facts, predicts_next=family.predicts_next, frozen=True)
        else:
            running = LeadingLM(model, facts, team, predicts_next=family.predicts_next)
        if family is MASKED_LM:
            running.takes_padding = padding_is_harmless(name, running)
        text = Text(tokenizer, facts.end_ids) if tokenizer is not None else None
        return Checkpoint(name, family, running, text, source.commit, defaults)


def _check_kinds(options: FileOptions) -> None:
    """Refuse options of the wrong kind, which transformers would blame on the checkpoint or not notice at all."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("attn_implementation", "revision"):
        checks.string(name, given.get(name, ""))
    checks.instance("token", given.get("token", ""), (str, bool), "a string, or true or false")
    checks.instance("cache_dir", given.get("cache_dir", ""), (str, os.PathLike), "a path")
    checks.true_or_false("local_files_only", given.get("local_files_only", False))
    quantization = given.get("quantization_config", {})
    if not isinstance(quantization, Mapping) and not hasattr(quantization, "quant_method"):
        raise SettingsError(
            "quantization_config must be one of transformers' configs, such as BitsAndBytesConfig(), not "
            f"{shown(quantization)}."
        )


def _processes(device: str | torch.device | None, options: FileOptions) -> int:
    """Over how many processes the model is split; what cannot be combined with that is refused."""
    processes = options.get("tensor_parallel")
    if processes is None or checks.whole_number("tensor_parallel", processes, 1, MOST_PROCESSES) == 1:
        return 1
    others = [name for name in ("device_map", "quantization_config") if options.get(name) is not None]
    if others:
        raise SettingsError(f"tensor_parallel and {others[0]} cannot be combined; leave one of them out.")
    check_possible(processes, None if device is None else usable_device(device))
    return processes


def _placement(
    device: str | torch.device | None, dtype: str | torch.dtype | None, options: FileOptions
) -> tuple[dict[str, Any], torch.device | None]:
    """The arguments of from_pretrained that place weights, and the device to move the model to, if any is left."""
    device_map, quantization = options.get("device_map"), options.get("quantization_config")
    if device is not None and device_map is not None:
        raise SettingsError("Give either device (one place) or device_map (several), not both.")
    target = usable_device(device)
    placement = {
        "dtype": _dtype(dtype, target if device_map is None else None),
        # quantized weights cannot be moved once they are loaded
        "device_map": {"": target} if quantization is not None and device_map is None else device_map,
        "quantization_config": quantization,
        "attn_implementation": options.get("attn_implementation"),
    }
    placement = {name: value for name, value in placement.items() if value is not None}
    if "device_map" in placement and find_spec("accelerate") is None:
        raise MissingExtra("accelerate", "accelerate", "device_map and quantization_config")
    return placement, None if "device_map" in placement else target


def _access(options: FileOptions) -> dict[str, Any]:
    """The options of every Hub access, as transformers takes them."""
    access: Mapping[str, Any] = options
    names = ("revision", "token", "cache_dir", "local_files_only")
    return {name: access[name] for name in names if access.get(name) is not None}


def hub_commit(name: str, options: Mapping[str, Any]) -> str | None:
    """The commit that a Hub id stands for now, found without its weights; None for a folder."""
    with readable_errors(name):
        return Source.named(name, _access(cast(FileOptions, options))).commit


def _base(adapter: Adapter, access: Mapping[str, Any]) -> Source:
    """Where the base model of an adapter is; the adapter's revision does not apply to it."""
    own = {name: value for name, value in access.items() if name != "revision"}
    if adapter.revision is not None:
        own["revision"] = adapter.revision
    try:
        base = Source.named(adapter.base, own)
        if base.find(ADAPTER_CONFIG) is not None:
            raise CheckpointError("That is an adapter itself; merge the two with PEFT and load the merged model.")
    except SoarError as error:
        raise CheckpointError(f"{adapter.name!r} is an adapter for {adapter.base!r}. {error}") from error
    return base


def usable_device(device: str | torch.device | None) -> torch.device:
    """The given device, or the first accelerator, or the CPU."""
    if device is None:
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return accelerator or torch.device("cpu")
    try:
        found = torch.empty(0, device=device).device
    except Exception as error:  # each kind of device has its own errors
        raise SettingsError(f"Device {shown(device)} cannot be used here: {told(error)}.") from error
    if found.type == "meta":
        raise SettingsError("The device 'meta' holds no weights; choose one that does, such as 'cpu'.")
    return found


def _dtype(dtype: str | torch.dtype | None, device: torch.device | None) -> str | torch.dtype:
    if dtype is None:
        return torch.float32 if device is not None and device.type == "cpu" else "auto"
    if isinstance(dtype, torch.dtype):
        if not dtype.is_floating_point:
            raise SettingsError(f"dtype must be a floating-point type, not {dtype}.")
        return dtype
    known = checks.known_name("dtype", dtype, [*DTYPES, "auto"])
    return DTYPES.get(known, known)


def _tokenizer(source: Source, family: Family) -> Any:
    if not any(source.find(file) for file in TOKENIZER_FILES):
        return None
    kind = getattr(transformers, family.tokenizer_class)
    try:
        return kind.from_pretrained(source.place, trust_remote_code=False, **source.access)
    except Exception as error:  # the Rust side raises bare Exceptions
        raise CheckpointError(f"The tokenizer of {source.name!r} cannot be read: {told(error)}.") from error


def _defaults(source: Source) -> DecodingDefaults | None:
    content = source.read_object(FILE)
    return read_defaults(content, repr(source.name)) if content is not None and SECTION in content else None
