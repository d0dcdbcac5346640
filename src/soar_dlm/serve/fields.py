"""The fields of requests: OpenAI's, and how to decode, which come from the library's own options and strategies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial, reduce
from operator import or_
from typing import Annotated, Any, Optional, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    create_model,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_after_validator_function

from soar_dlm.options import GenerateOptions, InfillOptions
from soar_dlm.search.catalogue import STRATEGIES
from soar_dlm.serve.failures import Refused

T = TypeVar("T")
Many = Annotated[list[T], Field(fail_fast=True)]
"""A list whose first wrong entry is enough: to describe a million of them takes gigabytes."""

_ELSEWHERE = ("max_new_tokens", "stop", "temperature", "top_p", "seed", "chat")
"""Options that a client gives by OpenAI's names for them, or by the route it asks."""


class Strict(BaseModel):
    """What a client may send: nothing that is not named, nothing of another kind."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _one_unknown(cls, data: Any) -> Any:
        """The fields that there are, and the first of the others: one is enough to refuse them all."""
        if not isinstance(data, dict):
            return data
        unknown = [name for name in data if name not in cls.model_fields]
        return {name: value for name, value in data.items() if name in cls.model_fields or name == unknown[0]}


class Only:
    """A field of OpenAI's that is not offered: null and ``values``, which change nothing, are all it may be."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "enum": [None, *self._values],
            "description": "Not offered; it may have the value that changes nothing.",
        }

    def _checked(self, value: Any) -> None:
        if value is not None and value not in self._values:
            offered = " or ".join(map(json.dumps, self._values))
            hint = f", or send {offered}" if offered else ""
            raise PydanticCustomError("not_offered", "this is not offered here; leave it out{hint}", {"hint": hint})


def _options() -> dict[str, tuple[Any, str]]:
    """The options of a text and of a blank: name -> (type, help)."""
    found: dict[str, tuple[Any, str]] = {}
    for kind in (InfillOptions, GenerateOptions):
        hints = get_type_hints(kind)
        found |= {
            entry.name: (_json_type(hints[entry.name]), entry.metadata["help"])
            for entry in fields(kind)
            if entry.metadata["command"] and entry.name not in _ELSEWHERE
        }
    return found


def _settings() -> dict[str, tuple[Any, str]]:
    """The settings of all strategies there are: name -> (type, which strategies have it)."""
    kinds: dict[str, list[Any]] = {}
    owners: dict[str, list[str]] = {}
    for name in STRATEGIES.names():
        factory = STRATEGIES.get(name)
        kind = factory.func if isinstance(factory, partial) else factory
        hints = get_type_hints(kind) if is_dataclass(kind) else {}
        for entry in fields(kind) if is_dataclass(kind) else ():
            kinds.setdefault(entry.name, []).append(_json_type(hints[entry.name]))
            owners.setdefault(entry.name, []).append(name)
    return {name: (reduce(or_, found), f"A setting of {', '.join(owners[name])}.") for name, found in kinds.items()}


def _json_type(hint: Any) -> Any:
    """A type as JSON has it: sequences are lists, mappings objects; what JSON cannot express is left out."""
    origin, arguments = get_origin(hint), get_args(hint)
    if type(None) in arguments or origin is Union:
        kept = [_json_type(one) for one in arguments if one is not type(None)]
        return reduce(or_, [one for one in kept if one is not None])
    if origin is Sequence:
        return Many[_json_type(arguments[0])]  # type: ignore[misc]
    if origin is Mapping:
        return dict[str, Any]
    return hint if hint in (bool, int, float, str) else None


OPTIONS, SETTINGS = _options(), _settings()

_FIELDS: dict[str, Any] = {
    name: (Optional[kind], Field(None, description=text))
    for name, (kind, text) in {**SETTINGS, **OPTIONS}.items()
    if kind is not None
}
_STRATEGY = Field(None, description="The strategy's name; by default the checkpoint's own choice.")

Decoding: Any = create_model("Decoding", __base__=Strict, strategy=(Optional[str], _STRATEGY), **_FIELDS)
"""How to decode: a strategy, its settings, and the options of a request. What is absent or null is the checkpoint's."""


def given(body: BaseModel, names: Iterable[str]) -> dict[str, Any]:
    """Those of the fields that are not null."""
    return {name: value for name in names if (value := getattr(body, name, None)) is not None}


def given_options(body: BaseModel, blanks: bool) -> dict[str, Any]:
    """The options of a request that are not null; those of the other kind of text are refused."""
    options = given(body, OPTIONS)
    known = {entry.name for entry in fields(InfillOptions if blanks else GenerateOptions)}
    for name in options.keys() - known:
        only = "that continue a prompt" if blanks else "with a blank in them"
        raise Refused(400, f"{name} is for texts {only}; leave it out.", name)
    return options
