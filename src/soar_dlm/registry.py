"""Names that resolve to objects: ours by import path, other packages' by entry point."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from soar_dlm import checks
from soar_dlm.errors import DuplicateName, SettingsError, SoarError, UnknownName, told

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of lazily imported objects.

    1. ``builtin`` maps a name to ``"module:attribute"``; nothing is imported until the name is asked for.
    2. Installed packages add names through the entry-point ``group``, in their own pyproject.toml.
    3. Programs add names with :meth:`register`.
    4. A name that two packages claim is refused when it is asked for; an unknown one suggests the nearest.
    """

    def __init__(self, kind: str, group: str, builtin: dict[str, str]) -> None:
        self.kind, self.group = kind, group
        self._loaders: dict[str, Callable[[], Any]] = {
            name: lambda path=path: _import(path)  # type: ignore[misc]
            for name, path in builtin.items()
        }
        self._contested: set[str] = set()
        self._discovered = False

    def names(self) -> list[str]:
        """All names there are, sorted."""
        self._discover()
        return sorted(self._loaders)

    def get(self, name: str) -> T:
        """The object of this name, imported now if it was not before."""
        self._discover()
        if not isinstance(name, str) or name not in self._loaders:
            raise UnknownName(self.kind, name, self._loaders)
        if name in self._contested:
            raise DuplicateName(
                f"The {self.kind} name {name!r} is taken; the package that adds it must choose another name in the "
                f"entry-point group {self.group!r}."
            )
        try:
            return cast(T, self._loaders[name]())
        except SoarError:
            raise
        except Exception as error:  # importing a package runs its code
            raise SettingsError(
                f"The {self.kind} {name!r} is installed but cannot be imported: {told(error)}."
            ) from error

    def register(self, name: str, value: T) -> None:
        """Add a name for the rest of the program; one that is taken is refused."""
        self._discover()
        if not checks.string(f"The name of a {self.kind}", name):
            raise SettingsError(f"The name of a {self.kind} must not be empty.")
        if name in self._loaders:
            raise DuplicateName(f"The {self.kind} name {name!r} is taken; register yours under another name.")
        self._loaders[name] = lambda: value

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        for entry in entry_points(group=self.group):
            if entry.name in self._loaders:
                self._contested.add(entry.name)
            else:
                self._loaders[entry.name] = entry.load


def _import(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
