"""The reference at ``/docs``: the OpenAPI schema as a page for people, without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

Schema = Mapping[str, Any]
_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
    '<link rel="stylesheet" href="page/base.css"><link rel="stylesheet" href="page/docs.css"></head><body><main>'
    "<h1>{title}</h1>"
)
_INTRODUCTION = (
    '<p>Every route and its fields. <a href="openapi.json">The same for programs</a>: OpenAPI. '
    '<a href="./">The page</a> shows a model at work.</p>'
)


def page_of(schema: Schema) -> str:
    """The page of an OpenAPI schema."""
    title = escape(f"{schema['info']['title']} {schema['info']['version']}")
    return "".join([_HEAD.format(title=title), _INTRODUCTION, *_routes(schema), "</main></body></html>"])


def _routes(schema: Schema) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, one in methods.items():
            yield f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>{_text(one.get('description', ''))}"
            parameters = [(each["name"], each["schema"], each) for each in one.get("parameters", ())]
            yield from _table("Parameters", parameters, schema)
            yield from _body("Fields", one.get("requestBody", {}), schema)
            yield from _body("Answer", one["responses"].get("200", {}), schema)
            yield "</section>"
    every = [one["responses"] for methods in schema["paths"].values() for one in methods.values()]
    failures = {code: told for responses in every for code, told in responses.items() if code != "200"}
    rows = "".join(
        f"<tr><td><code>{code}</code></td><td>{escape(told['description'])}</td></tr>"
        for code, told in sorted(failures.items())
    )
    yield f"<section><h2>Failures</h2><div><table><tbody>{rows}</tbody></table></div></section>"


def _body(title: str, body: Schema, schema: Schema) -> Iterator[str]:
    for kind, content in body.get("content", {}).items():
        found = _resolved(content.get("schema", {}), schema)
        required = found.get("required", ())
        given = found.get("properties", {})
        fields = [(name, own, {"required": name in required, **own}) for name, own in given.items()]
        yield from _table(f"{title} ({kind})", fields, schema)


def _table(title: str, fields: Sequence[tuple[str, Schema, Schema]], schema: Schema) -> Iterator[str]:
    if not fields:
        return
    yield f"<h3>{escape(title)}</h3><div><table><tbody>"
    for name, kind, about in fields:
        needed = " (required)" if about.get("required") else ""
        told = _text(about.get("description", ""))
        yield f"<tr><th><code>{escape(name)}</code>{needed}</th><td><code>{escape(_kind(kind, schema))}</code></td>"
        yield f"<td>{told}</td></tr>"
    yield "</tbody></table></div>"


def _kind(kind: Schema, schema: Schema) -> str:
    """A type in a few words; null, which every optional field takes, is left out."""
    if "$ref" in kind:
        return str(kind["$ref"]).rpartition("/")[2]
    if "anyOf" in kind:
        return " or ".join(_kind(one, schema) for one in kind["anyOf"] if one.get("type") != "null")
    if "const" in kind or "enum" in kind:
        return " or ".join(repr(one) for one in kind.get("enum", [kind.get("const")]))
    if kind.get("type") == "array":
        return f"list of {_kind(kind.get('items', {}), schema)}"
    return str(kind.get("type", "any"))


def _resolved(kind: Schema, schema: Schema) -> Schema:
    if "$ref" not in kind:
        return kind
    found: Schema = schema["components"]["schemas"][kind["$ref"].rpartition("/")[2]]
    return found


def _text(text: str) -> str:
    """A docstring as HTML: paragraphs, and code between double backticks."""
    parts = escape(text).split("``")
    whole = "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
    return "".join(f"<p>{one}</p>" for one in whole.split("\n\n") if one.strip())
