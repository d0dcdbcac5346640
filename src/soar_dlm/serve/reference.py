"""The reference at ``/docs``: the OpenAPI schema as a page for people, without a script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

Schema = Mapping[str, Any]
_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><title>{title}</title>'
    '<link rel="icon" href="page/icon.svg" type="image/svg+xml">'
    '<link rel="stylesheet" href="page/base.css"><link rel="stylesheet" href="page/docs.css"></head><body><main>'
    "<h1>{title}</h1>"
)
_INTRODUCTION = (
    '<p>Every route and its fields. <a href="openapi.json">The same for programs</a>: OpenAPI. '
    '<a href="./">The page</a> shows a model at work.</p>'
)
_SHARED = "decoding"
"""The anchor of the fields that all bodies have."""
_LIMITS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}


def page_of(schema: Schema) -> str:
    """The page of an OpenAPI schema."""
    title = escape(f"{schema['info']['title']} {schema['info']['version']}")
    return "".join([_HEAD.format(title=title), _INTRODUCTION, *_Reference(schema).sections(), "</main></body></html>"])


class _Reference:
    """Routes, then what they have in common: the fields of every body, failures, and the objects in fields."""

    def __init__(self, schema: Schema) -> None:
        self._kinds: Mapping[str, Schema] = schema["components"]["schemas"]
        self._routes = [
            (f"{method.upper()} {path}", route)
            for path, methods in schema["paths"].items()
            for method, route in methods.items()
        ]
        bodies = [self._fields(content) for _, route in self._routes for content in _contents(route.get("requestBody"))]
        self._shared = {
            name: field for name, field in bodies[0].items() if all(body.get(name) == field for body in bodies)
        }
        self._named: list[str] = []
        """The objects that fields refer to, in the order in which they are met."""

    def sections(self) -> Iterator[str]:
        for title, route in self._routes:
            yield f"<section><h2><code>{escape(title)}</code></h2>{_text(route.get('description', ''))}"
            yield self._table("Parameters", {each["name"]: each["schema"] for each in route.get("parameters", ())})
            for content in _contents(route.get("requestBody")):
                yield self._table("Fields", self._fields(content), content.get("schema", {}))
            for content in _contents(route["responses"]["200"]):
                yield self._table("Answer", self._fields(content))
            yield "</section>"
        yield f'<section id="{_SHARED}"><h2>How to decode</h2>{self._rows(self._shared)}</section>'
        yield f"<section><h2>Failures</h2>{self._failures()}</section>"
        for name in self._named:  # grows as objects refer to others
            kind = self._kinds[name]
            yield f'<section id="{name}"><h2>{name}</h2>{_text(kind.get("description", ""))}'
            yield f"{self._rows(kind.get('properties', {}), kind.get('required', ()))}</section>"

    def _failures(self) -> str:
        (shape,) = _contents(self._routes[0][1]["responses"]["400"])
        every = [route["responses"].items() for _, route in self._routes]
        failures = {code: told["description"] for one in every for code, told in one if code != "200"}
        return f"<p>Each is told as {self._kind(shape['schema'])}.</p>" + _as_table(
            f"<tr><th><code>{code}</code></th><td>{escape(told)}</td></tr>" for code, told in sorted(failures.items())
        )

    def _fields(self, content: Schema) -> Schema:
        fields: Schema = self._resolved(content.get("schema", {})).get("properties", {})
        return fields

    def _table(self, title: str, fields: Schema, body: Schema | None = None) -> str:
        """The fields by name; of a body, those that not all bodies have, required ones first."""
        if not fields:
            return ""
        if body is None:
            return f"<h3>{title}</h3>{self._rows(fields)}"
        required = self._resolved(body).get("required", ())
        own = sorted(
            fields.keys() - self._shared.keys(), key=lambda name: (name not in required, [*fields].index(name))
        )
        link = f'<p>And all that says <a href="#{_SHARED}">how to decode</a>.</p>'
        return f"<h3>{title}</h3>{self._rows({name: fields[name] for name in own}, required)}{link}"

    def _rows(self, fields: Schema, required: Any = ()) -> str:
        """One row for each field. Required ones that may be null say so; all others may be null or left out."""
        rows = []
        for name, field in fields.items():
            needed = " (required)" if name in required else ""
            null = " or null" if needed and {"type": "null"} in field.get("anyOf", ()) else ""
            rows.append(
                f"<tr><th><code>{escape(name)}</code>{needed}</th><td>{self._kind(field)}{null}</td>"
                f"<td>{_text(field.get('description', ''))}</td></tr>"
            )
        return _as_table(rows)

    def _kind(self, kind: Schema) -> str:
        """A type in a few words; null, which every optional field takes, is left out."""
        if "$ref" in kind:
            name = kind["$ref"].rpartition("/")[2]
            if name not in self._named:
                self._named.append(name)
            return f'<a href="#{name}">{name}</a>'
        if "anyOf" in kind:
            return " or ".join(self._kind(one) for one in kind["anyOf"] if one.get("type") != "null")
        if "const" in kind or "enum" in kind:
            values = kind.get("enum", [kind.get("const")])
            return " or ".join(f"<code>{escape(json.dumps(one))}</code>" for one in values)
        told = (
            f"list of {self._kind(kind.get('items', {}))}" if kind.get("type") == "array" else kind.get("type", "any")
        )
        limits = [f"{words} {kind[limit]:g}" for limit, words in _LIMITS.items() if limit in kind]
        return ", ".join([told, *limits])

    def _resolved(self, kind: Schema) -> Schema:
        return self._kinds[kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind


def _contents(body: Schema | None) -> list[Schema]:
    return [] if body is None else [*body.get("content", {}).values()]


def _as_table(rows: Iterable[str]) -> str:
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _text(text: str) -> str:
    """A docstring as HTML: paragraphs, and code between double backticks."""
    parts = escape(text).split("``")
    whole = "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
    return "".join(f"<p>{one}</p>" for one in whole.split("\n\n") if one.strip())
