"""Names that resolve to objects: ours by import path, other packages' by entry point."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from soar_dlm.errors import DuplicateName, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of lazily imported objects.

    1. ``builtin`` maps a name to ``"module:attribute"``; nothing is imported until the name is asked for.
    2. Installed packages add names through the entry-point ``group``, in their own pyproject.toml.
    3. Programs add names with :meth:`register`.
    4. A name that is already taken is refused, wherever it comes from; an unknown one suggests the nearest.
    """

    def __init__(self, kind: str, group: str, builtin: dict[str, str]) -> None:
        self.kind, self.group = kind, group
        self._loaders: dict[str, Callable[[], Any]] = {
            name: lambda path=path: _import(path)  # type: ignore[misc]
            for name, path in builtin.items()
        }
        self._discovered = False

    def names(self) -> list[str]:
        self._discover()
        return sorted(self._loaders)

    def get(self, name: str) -> T:
        self._discover()
        if name not in self._loaders:
            raise UnknownName(self.kind, name, self._loaders)
        return cast(T, self._loaders[name]())

    def register(self, name: str, value: T) -> None:
        self._discover()
        self._add(name, lambda: value)

    def _add(self, name: str, loader: Callable[[], Any]) -> None:
        if name in self._loaders:
            raise DuplicateName(
                f"The {self.kind} name {name!r} is taken; register yours under another name in the entry-point "
                f"group {self.group!r}."
            )
        self._loaders[name] = loader

    def _discover(self) -> None:
        if self._discovered:
            return
        for entry in entry_points(group=self.group):
            self._add(entry.name, entry.load)
        self._discovered = True


def _import(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
