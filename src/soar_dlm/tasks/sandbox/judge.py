"""The process that runs the tests. Runs inside the sandbox.

It executes nothing of the program. A function of the program is a :class:`Remote`: calling it sends the arguments over
the pipe and returns the plain value that comes back, so every comparison is one of built-in types by this process.
"""

from __future__ import annotations

import builtins
import os

from soar_dlm.tasks.sandbox.frames import TooLong, receive, send
from soar_dlm.tasks.sandbox.values import NotPlain, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

OUT_OF_TIME = (9, 24)
"""The signals that end a process at its CPU limit."""


class Ended(BaseException):
    """The program's process will answer no more."""


class Link:
    """Questions to the program's process. ``why`` is set once it has ended; ``objects`` counts what was not plain."""

    def __init__(self, incoming: int, outgoing: int, process: int, most: int) -> None:
        self.incoming, self.outgoing, self.process, self.most = incoming, outgoing, process, most
        self.why = ""
        self.objects = 0

    def hello(self) -> Any:
        """What the process says of itself before the program is there."""
        return unpack(receive(self.incoming, self.most))

    def start(self, program: str, exact: bool) -> None:
        self._exchange(pack((program, exact)))

    def ask(self, verb: str, *operands: Any) -> Any:
        """The answer to one question; a list that the call changed is changed here, too."""
        try:
            reply = self._exchange(pack((verb, *operands), number_of))
        except StopIteration as error:  # from a call it would end a loop of the tests as if all were well
            raise error if verb == "next" else RuntimeError("StopIteration") from error
        self.objects += verb != "name" and type(reply[1]) is Remote
        if verb == "call" and reply[2] is not None:
            arguments, named = reply[2]
            for mine, theirs in zip(operands[1], arguments, strict=True):
                _follow(mine, theirs)
            for name, mine in operands[2].items():
                _follow(mine, named[name])
        return reply[1]

    def _exchange(self, message: bytes) -> Any:
        if self.why:
            raise Ended
        try:
            send(self.outgoing, message)
            reply = unpack(receive(self.incoming, self.most), lambda number: Remote(self, number))
            kind, one, two = (*reply, None)[:3]
        except TooLong:
            self._end("output")
        except (NotPlain, ValueError, TypeError):
            self._end("wrong")
        except (EOFError, OSError):
            status = os.waitpid(self.process, 0)[1]
            self._end("timeout" if os.WIFSIGNALED(status) and os.WTERMSIG(status) in OUT_OF_TIME else "exit")
        if kind == "end":
            self._end(one if one in ("syntax", "memory", "exit", "wrong") else "exit")
        if kind == "error":
            raise _exception(one, two)
        return (kind, one, two)

    def _end(self, why: str) -> NoReturn:
        self.why = why
        raise Ended


class Remote:
    """An object of the program: it can be called, used and passed back, but not compared or tested here."""

    __slots__ = ("_link", "_number")

    def __init__(self, link: Link, number: int) -> None:
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_number", number)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._link.ask("call", self, list(arguments), named)

    def __getattr__(self, name: str) -> Any:
        return self._link.ask("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._link.ask("set", self, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._link.ask("item", self, key)

    def __iter__(self) -> Any:
        return self._link.ask("iter", self)

    def __next__(self) -> Any:
        return self._link.ask("next", self)

    def __len__(self) -> int:
        return self._link.ask("len", self)  # type: ignore[no-any-return]

    def _unknown(self, *_: object) -> NoReturn:
        raise TypeError("an object of the program has no plain value")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __contains__ = _unknown
    __hash__ = None  # type: ignore[assignment]


def number_of(value: Any) -> int:
    if type(value) is not Remote:
        raise NotPlain
    return value._number  # type: ignore[no-any-return]


def _follow(mine: Any, theirs: Any) -> None:
    """Make a list, dictionary or set the same as the one that the program's process has now."""
    if type(mine) is not type(theirs):
        return
    if type(mine) is list:
        mine[:] = theirs
    elif type(mine) in (dict, set):
        mine.clear()
        mine.update(theirs)


def _exception(names: Any, text: Any) -> Exception:
    """The nearest exception that is built in; the program's own classes do not come here."""
    for name in names if type(names) is list else ():
        found = getattr(builtins, name, None) if type(name) is str else None
        if isinstance(found, type) and issubclass(found, Exception):
            try:
                return found(text)
            except TypeError:  # it takes more than a text, unlike its base class
                continue
    return RuntimeError(text)


def by_cases(link: Link, program: str, name: str, arguments: list[list[Any]]) -> tuple[str, list[Any]]:
    """What the function ``name`` returns for each list of arguments; the expected values are elsewhere."""
    answers: list[Any] = []
    left = link.most
    try:
        link.start(program, True)
        try:
            function = link.ask("name", name)
            if type(function) is not Remote or link.ask("callable", function) is not True:
                return "missing", []
        except KeyError:
            return "missing", []
        for values in arguments:
            answers.append(link.ask("call", function, values, {}))
            left -= len(pack(answers[-1]))
            if left < 0:
                return "output", []
    except Ended:
        return link.why, []
    except (Exception, RecursionError):
        return "error", []
    return "passed", answers


def by_tests(link: Link, program: str, given: str, tests: str, names: list[str]) -> tuple[str, list[Any]]:
    """Whether the tests run to their end, and how many objects of the program they used that are not plain values.

    ``names`` are the program's; ``given`` is trusted code that the tests rely on.
    """
    try:
        link.start(program, False)
        space: dict[str, Any] = {"__name__": "tests"}
        exec(compile(given, "given", "exec"), space)
        for name in names:
            try:
                space[name] = link.ask("name", name)
            except KeyError:
                return "missing", []
        exec(compile(tests, "tests", "exec"), space)
    except AssertionError:
        return link.why or "wrong", []
    except (Ended, Exception):
        return link.why or "error", []
    except BaseException:
        return "exit", []
    return link.why or "passed", [link.objects]
