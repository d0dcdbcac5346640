"""What came of malformed calls: accepted, refused as they should be, or something that must not be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.malformed.room import Hung, NotSoar
from benchmarks.pages import table
from soar_dlm.errors import SoarError, UnexpectedError

HEAD = ("part", "calls", "refused", "places left to the last check", "accepted", "other exceptions", "hangs")


@dataclass
class Tally:
    """What came of some calls; ``unforeseen`` are those that only the last check at a door refused.

    Of equal errors it keeps the shortest call.
    """

    calls: int = 0
    refused: int = 0
    other_calls: int = 0
    unforeseen: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    hangs: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> int:
        return self.calls - self.refused - self.other_calls - len(self.hangs)

    @property
    def clean(self) -> bool:
        return not self.others and not self.hangs

    def add(self, verdict: str, what: str, label: str) -> None:
        """Count a call by what :func:`judged` said of it."""
        self.calls += 1
        self.refused += verdict in ("refused", "unforeseen")
        self.other_calls += verdict == "other"
        if verdict == "unforeseen":
            _keep_shortest(self.unforeseen, what, label)
        elif verdict == "other":
            _keep_shortest(self.others, what, label)
        elif verdict == "hang":
            self.hangs.append(label)

    def include(self, more: Tally) -> None:
        """Count the calls of another tally, too."""
        self.calls += more.calls
        self.refused += more.refused
        self.other_calls += more.other_calls
        self.hangs += more.hangs
        for mine, theirs in ((self.unforeseen, more.unforeseen), (self.others, more.others)):
            for what, label in theirs.items():
                _keep_shortest(mine, what, label)


def _keep_shortest(examples: dict[str, str], what: str, label: str) -> None:
    if what not in examples or len(label) < len(examples[what]):
        examples[what] = label


def judged(run: Callable[[], object]) -> tuple[str, str]:
    """What came of a call: accepted, refused, unforeseen, other or hang, and which error if it must not be."""
    try:
        run()
    except UnexpectedError as error:
        return "unforeseen", where(error.__cause__ or error)
    except SoarError:
        return "refused", ""
    except Hung:
        return "hang", ""
    except BaseException as error:  # the question is whether there is any
        return "other", where(error)
    return "accepted", ""


def where(error: BaseException) -> str:
    """The kind of an error and the last line of the library it passed, so that equal ones count as one."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "soar_dlm" in file and not file.endswith("doors.py"):
            place = f" in {Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    told = str(error)[:160] if isinstance(error, NotSoar) else ""
    return f"{type(error).__name__}{place} {told}".strip()


def shown(tallies: Mapping[str, Tally]) -> str:
    """The table, and the shortest example of everything that was not foreseen or must not be."""
    rows, found = [], []
    for part, tally in tallies.items():
        hangs = len(tally.hangs)
        numbers = (tally.calls, tally.refused, len(tally.unforeseen), tally.accepted, tally.other_calls, hangs)
        rows.append([part, *(f"{number:,}" for number in numbers)])
        found += [(part, "unforeseen", what, label) for what, label in tally.unforeseen.items()]
        found += [(part, "OTHER", what, label) for what, label in tally.others.items()]
        found += [(part, "HANG", "", label) for label in tally.hangs]
    examples = [f"- {part}: {kind} {what}: {label[:400]!r}" for part, kind, what, label in found]
    return "\n".join([table(HEAD, rows), *([""] if examples else []), *examples])
