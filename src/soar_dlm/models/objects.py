"""A model that is in memory already: any transformers model object becomes a checkpoint."""

from __future__ import annotations

from typing import Any

import transformers
from torch import nn

from soar_dlm.errors import CheckpointError, SettingsError
from soar_dlm.models.checkpoint import Checkpoint
from soar_dlm.models.defaults import SECTION, read_defaults
from soar_dlm.models.facts import read_facts
from soar_dlm.models.families import FAMILIES, MASKED_LM, Family
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.models.probes import looks_left_only, padding_is_harmless, vocabulary_of
from soar_dlm.models.running import LoadedLM, TransformersLM, WholeModelLM
from soar_dlm.models.stock import is_own_class
from soar_dlm.models.text import Text


def checkpoint_of(
    model: nn.Module, *, tokenizer: Any = None, family: str | None = None, mask_token_id: int | None = None
) -> Checkpoint:
    """A model object as a checkpoint.

    1. A PEFT model runs with its adapter as it is, not merged.
    2. The family is the given one, or the one that the object's config or class tells.
    3. A class of transformers itself (``...ForMaskedLM``, ``...ForCausalLM``) is cut into backbone and head, and
       switched to attend in both directions.
    4. Any other class, such as the published LLaDAModelLM and DreamModel, runs whole.

    The object is put into evaluation mode; it shares its weights with the checkpoint and can still be used.
    """
    module: Any = _without_peft(model)
    config: Any = getattr(module, "config", None)
    name = getattr(config, "_name_or_path", None) or type(module).__name__
    kind = _family(module, config, family, name)
    stock = _is_stock(module, config)
    raw = config.to_dict() if hasattr(config, "to_dict") else {}
    generation = getattr(module, "generation_config", None)
    defaults = read_defaults({SECTION: getattr(generation, SECTION, None)}, repr(name))
    module.eval()
    facts = read_facts(
        name,
        kind,
        raw,
        module,
        tokenizer,
        mask_token_id,
        vocab_size=config.vocab_size if stock else vocabulary_of(name, module),
        thresholds=defaults.thresholds,
    )
    shifted = kind.predicts_next
    running = _stock(name, module, facts, shifted) if stock else WholeModelLM(module, facts, predicts_next=shifted)
    text = Text(tokenizer, facts.end_ids) if tokenizer is not None else None
    return Checkpoint(name, kind, running, text, None, defaults)


def _without_peft(model: Any) -> Any:
    """The model inside a PeftModel, whose layers have the adapter in them."""
    if not hasattr(model, "get_base_model"):
        return model
    if any(getattr(config, "is_prompt_learning", False) for config in model.peft_config.values()):
        raise SettingsError(
            "Prompt tuning and prefix tuning add tokens to the prompt, which a canvas has no room for. "
            "Give a model with LoRA or another adapter that changes weights."
        )
    return model.get_base_model()


def _family(model: Any, config: Any, given: str | None, name: str) -> Family:
    families = {family.name: family for family in FAMILIES}
    if given is not None:
        return families[given]
    for family in FAMILIES:
        if getattr(config, "model_type", None) in family.model_types:
            return family
    if type(model).__name__.endswith("ForMaskedLM") or _is_masked_lm(model, config):
        return MASKED_LM
    raise SettingsError(
        f"Nothing about {name!r} tells its family: pass family='llada' if the output at a mask is about that mask, "
        "family='dream' if it is about the next token."
    )


def _is_masked_lm(model: Any, config: Any) -> bool:
    known = transformers.MODEL_FOR_MASKED_LM_MAPPING
    return type(config) in known and type(model) is known[type(config)]


def _is_stock(model: Any, config: Any) -> bool:
    if getattr(config, "is_encoder_decoder", False):
        raise CheckpointError(f"A {type(model).__name__} has an encoder and a decoder; it does not fill masks.")
    kind = type(model)
    causal = kind.__module__.startswith("transformers.") and kind.__name__.endswith("ForCausalLM")
    return causal or _is_masked_lm(model, config)


def _stock(name: str, model: Any, facts: ModelFacts, predicts_next: bool) -> LoadedLM:
    causal = not _is_masked_lm(model, model.config)
    if causal:
        model.config.is_causal = False
    running = TransformersLM(model, facts, predicts_next=predicts_next)
    if not is_own_class(model):
        running.takes_padding = padding_is_harmless(name, running)
    if causal and looks_left_only(running):
        raise CheckpointError(
            f"A {type(model).__name__} attends only to what comes before a token, even with config.is_causal = False; "
            "a masked language model must attend in both directions."
        )
    return running
