"""The library as a model of lm-evaluation-harness: ``lm_eval --model soar --model_args pretrained=...``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM as HarnessModel  # noqa: N811
from lm_eval.api.registry import register_model
from tqdm import tqdm

from soar_dlm import checks
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import SettingsError, shown
from soar_dlm.evals.likelihood import Pair, log_likelihoods, would_be_written
from soar_dlm.evals.ranks import Ranks
from soar_dlm.lm import load
from soar_dlm.models.loading import FileOptions
from soar_dlm.options import Options
from soar_dlm.presets import named_or_preset

LOADING = (*FileOptions.__optional_keys__, "mask_token_id", "trust_remote_code")
DECODING = tuple(entry.name for entry in fields(Options) if entry.name != "trace")
IGNORED = ("max_batch_size",)
LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
AT_ONCE = 256
UNASKED = "cuda:0"
"""The device that ``lm_eval`` passes if the user names none; without CUDA, the library chooses."""

log = logging.getLogger(__name__)


@register_model("soar")
class SoarModel(HarnessModel):  # type: ignore[misc]
    """A diffusion language model with a decoding strategy.

    ``pretrained`` is a Hub id, a folder or an embedded name. ``strategy`` is a name, ``preset`` a file; without either,
    the model's default strategy is used. Settings of the strategy (``beam``, ``threshold``, ``metric``...) and options
    of loading and decoding have their names in the library. ``max_gen_toks`` is the length of the canvas for tasks that
    set none, ``mc_num`` the number of samples for a likelihood, ``batch_size`` the most rows in a forward.
    """

    def __init__(
        self,
        pretrained: str,
        strategy: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_size: int | str = 32,
        max_gen_toks: int = 256,
        mc_num: int = 128,
        preset: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        given = {name: value for name, value in settings.items() if name not in IGNORED}
        loading = {name: given.pop(name) for name in LOADING if name in given}
        self.decoding = {name: given.pop(name) for name in DECODING if name in given}
        chosen = named_or_preset(strategy, preset, **given)
        self.ranks = Ranks()
        self._rank, self._world_size = self.ranks.rank, self.ranks.count
        if device == UNASKED and not torch.cuda.is_available():
            device = None
        self.lm = load(
            pretrained, self.ranks.device or device, dtype, engine=EngineSettings(max_rows=_rows(batch_size)), **loading
        )
        self.strategy = chosen if chosen is not None and preset is not None else self.lm.strategy(strategy, **given)
        self._device = self.lm.model.device
        self.max_gen_toks = checks.whole_number("max_gen_toks", max_gen_toks, 1)
        self.mc_num = checks.whole_number("mc_num", mc_num, 1)
        self._rendered = False

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """The texts of all requests; requests with equal settings are decoded together."""
        groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for place, request in enumerate(requests):
            options = self._options(request.args[1])
            groups.setdefault(repr(options), (options, []))[1].append(place)
        texts: dict[int, str] = {}
        with tqdm(total=len(requests), disable=disable_tqdm or not self.ranks.first, desc="soar") as bar:
            for options, places in groups.values():
                prompts = (requests[place].args[0] for place in places)
                for number, result in self.lm.generate_as_completed(prompts, self.strategy, **options):
                    if isinstance(result, Exception):
                        raise result
                    place = places[number]
                    texts[place] = result.text
                    self.cache_hook.add_partial("generate_until", requests[place].args, result.text)
                    bar.update()
        return [texts[place] for place in range(len(requests))]

    def _options(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Options of ``generate`` from the harness's generation settings."""
        rest = dict(settings)
        until = rest.pop("until", None) or []
        stops = [until] if isinstance(until, str) else list(until)
        lengths = [rest.pop(name) for name in LENGTHS if name in rest]
        sampled = rest.pop("do_sample", None)
        options = {**self.decoding, "max_new_tokens": lengths[0] if lengths else self.max_gen_toks}
        options["stop"] = [stop for stop in stops if stop]
        for name in ("temperature", "top_p", "top_k"):
            if name in rest:
                options[name] = rest.pop(name)
        if sampled is False:
            options["temperature"] = 0.0
        if rest:
            log.warning("soar ignores the generation settings %s.", ", ".join(sorted(rest)))
        return {**options, "add_special_tokens": not self._rendered, "truncate_prompt": True, "trace": False}

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The Monte-Carlo estimate, and whether greedy decoding would write the continuation."""
        found: list[tuple[float, bool]] = []
        for start in tqdm(range(0, len(requests), AT_ONCE), disable=disable_tqdm or not self.ranks.first, desc="soar"):
            part = requests[start : start + AT_ONCE]
            pairs = [self._pair(*request.args) for request in part]
            fresh = list(zip(self._estimates(pairs), would_be_written(self.lm, pairs), strict=True))
            for request, value in zip(part, fresh, strict=True):
                self.cache_hook.add_partial("loglikelihood", request.args, value)
            found += fresh
        return found

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """The estimate for whole texts, in windows as long as the model's context that do not see each other."""
        totals = []
        for request in tqdm(requests, disable=disable_tqdm or not self.ranks.first, desc="soar"):
            ids, suffix = self._encoded(request.args[0])
            window = (self.lm.model.facts.context or len(ids) + 1) - len(suffix)
            pairs = [Pair([], ids[start : start + window], suffix) for start in range(0, len(ids), window)]
            totals.append(sum(self._estimates(pairs)))
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, totals[-1])
        return totals

    def _estimates(self, pairs: Sequence[Pair]) -> list[float]:
        return log_likelihoods(self.lm, pairs, self.mc_num, self.decoding.get("seed", 0))

    def _pair(self, context: str, continuation: str) -> Pair:
        """A context and its continuation as token ids.

        Spaces at the end of the context go to the continuation, since tokenizers join them with the next word. A
        context that is too long for the model loses its beginning, as a prompt does.
        """
        kept = context.rstrip(" ")
        (before, _), (whole, suffix) = self._encoded(kept), self._encoded(context + continuation)
        pair = Pair(whole[: len(before)], whole[len(before) :], suffix)
        over = len(pair) - (self.lm.model.facts.context or len(pair))
        if 0 < over <= len(pair.prompt):
            log.warning("A context loses its first %d tokens: the model takes %d.", over, self.lm.model.facts.context)
            pair = replace(pair, prompt=pair.prompt[over:])
        return pair

    def _encoded(self, text: str) -> tuple[list[int], list[int]]:
        return self.lm.encode(text, add_special_tokens=not self._rendered)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        self._rendered = True
        return str(
            self.lm.tokenizer.apply_chat_template(
                chat_history,
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=not add_generation_prompt,
            )
        )

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        if not chat_template:
            return None
        if not getattr(self.lm.tokenizer, "chat_template", None):
            raise SettingsError(f"{self.lm.name!r} has no chat template; leave out --apply_chat_template.")
        return str(self.lm.tokenizer.get_chat_template(chat_template if isinstance(chat_template, str) else None))

    @property
    def tokenizer_name(self) -> str:
        return self.lm.name.replace("/", "__")

    def all_gather(self, tensor: Any) -> Any:
        return self.ranks.all_gather(tensor)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        return self.ranks.gather_objects(obj)

    def barrier(self) -> None:
        self.ranks.wait()


def _rows(batch_size: int | str) -> int:
    """The harness passes a number, sometimes as text, or "auto"."""
    if str(batch_size).partition(":")[0] == "auto":
        return EngineSettings().max_rows
    try:
        return int(batch_size)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"batch_size must be a number or 'auto', not {shown(batch_size)}.") from error
