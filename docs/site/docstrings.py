"""Docstrings as the reference shows them.

1. Roles such as ``:class:`Event``` are links.
2. A paragraph that draws a tree keeps its lines.
3. A field has the default that it is made with, and an option of a request also its help.
4. Of an attribute it is said where it is only if that is unusual: on the class alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from textwrap import indent
from typing import Any

from griffe import Attribute, Docstring, Extension, Module, NameResolutionError, Object

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([\w.]+)`")


class Docstrings(Extension):
    def on_attribute_instance(self, *, node: Any, attr: Attribute, **_: Any) -> None:
        if "class-attribute" not in attr.labels or "instance-attribute" in attr.labels:
            attr.labels -= {"class-attribute", "instance-attribute", "module-attribute"}
        match getattr(node, "value", None):
            case ast.Call(func=ast.Name("_option"), args=[default, ast.Constant(str(text)), *_]):
                attr.value = ast.unparse(default)
                attr.docstring = Docstring(text, parent=attr)
            case ast.Call(func=ast.Name("field"), keywords=[ast.keyword("default_factory", ast.Lambda(body=default))]):
                attr.value = ast.unparse(default)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        for one in _documented(pkg):
            text = ROLE.sub(partial(_link, one, pkg), one.docstring.value)
            parts = text.split("\n\n")
            one.docstring.value = "\n\n".join(indent(part, "    ") if "├──" in part else part for part in parts)


def _documented(parent: Object) -> Iterator[Any]:
    if parent.docstring is not None:
        yield parent
    for member in parent.members.values():
        if isinstance(member, Object):
            yield from _documented(member)


def _link(where: Object, package: Module, role: re.Match[str]) -> str:
    """A link to what a name means in a docstring, if the reference has it; plain code otherwise."""
    first, dot, rest = role[1].partition(".")
    try:
        path = package.path if first == package.name else where.resolve(first)
    except NameResolutionError:
        path = f"{package.path}.{first}"
    return f'<autoref identifier="{path}{dot}{rest}" optional><code>{role[1]}</code></autoref>'
