"""The process that runs the program: it answers what the judge asks. Runs inside the sandbox.

The program shares this process, so it can change anything here. That is of no use to it: all that leaves is a plain
value, which is what the program may say anyway.
"""

from __future__ import annotations

import sys

from soar_dlm.tasks.sandbox.frames import receive, send
from soar_dlm.tasks.sandbox.values import NotPlain, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "program"


class Source:
    """What ``inspect`` and ``traceback`` ask for the lines of the program."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_source(self, name: str) -> str:
        return self.text


class Objects:
    """The objects of this process that the judge knows by number."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.numbers: dict[int, int] = {}

    def keep(self, value: Any) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.all)
            self.all.append(value)
        return self.numbers[id(value)]

    def find(self, number: int) -> Any:
        return self.all[number]


def serve(incoming: int, outgoing: int, ready: Any) -> None:
    """Run the program that the first message holds, then answer every question, until the judge ends.

    ``ready`` is told first; the program comes only when the judge has heard it.
    """
    send(outgoing, pack(ready))
    text, exact = unpack(receive(incoming))
    module, objects = type(sys)(NAME), Objects()
    module.__loader__ = Source(text)  # type: ignore[assignment]
    sys.modules[NAME], sys.modules["__main__"] = module, type(sys)("__main__")
    send(outgoing, _start(text, module.__dict__))
    while True:
        verb, *operands = unpack(receive(incoming), objects.find)
        send(outgoing, _answer(verb, operands, module.__dict__, objects, exact))


def _start(text: str, space: dict[str, Any]) -> bytes:
    try:
        code = compile(text, NAME, "exec")
    except BaseException:
        return pack(("end", "syntax"))
    try:
        exec(code, space)
    except BaseException as error:
        return _trouble(error)
    return pack(("value", None, None))


def _answer(verb: str, operands: list[Any], space: dict[str, Any], objects: Objects, exact: bool) -> bytes:
    keep = None if exact and verb == "call" else objects.keep
    try:
        before = _changeable(operands, objects) if verb == "call" and not exact else None
        value = _done(verb, operands, space)
        after = _changeable(operands, objects) if before is not None else None
        return pack(("value", value, None if before == after else operands[1:]), keep, exact)
    except NotPlain:
        return pack(("end", "wrong"))
    except BaseException as error:
        return _trouble(error)


def _changeable(operands: list[Any], objects: Objects) -> bytes | None:
    """The arguments of a call as they are now, if a function could change them."""
    arguments, named = operands[1:]
    if not any(type(one) in (list, dict, set) for one in (*arguments, *named.values())):
        return None
    try:
        return pack(operands[1:], objects.keep)
    except Exception:
        return None


def _done(verb: str, operands: list[Any], space: dict[str, Any]) -> Any:
    if verb == "name":
        return space[operands[0]]
    target, *rest = operands
    if verb == "call":
        return target(*rest[0], **rest[1])
    if verb == "get":
        return getattr(target, rest[0])
    if verb == "set":
        return setattr(target, rest[0], rest[1])
    if verb == "item":
        return target[rest[0]]
    return {"iter": iter, "next": next, "len": len, "callable": callable}[verb](target)  # type: ignore[operator]


def _trouble(error: BaseException) -> bytes:
    if isinstance(error, MemoryError):
        return pack(("end", "memory"))
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return pack(("end", "exit"))
    try:
        return pack(("error", [one.__name__ for one in type(error).__mro__], str(error)[:1000]))
    except Exception:
        return pack(("error", [], ""))
