"""Is every mistake answered by a sentence? Malformed calls, files and commands, each with the same three questions.

    python -m benchmarks.fuzz                                    50,000 calls
    python -m benchmarks.fuzz --parts api loading --calls 2000   some parts, so many calls of each
    python -m benchmarks.fuzz --first 40                         continue where a run with as many chunks ended

1. Nothing but a SoarError may come out. 2. No stack trace may be shown. 3. No call may take longer than 5 seconds.

Calls come in chunks. Half of them are made by hypothesis, half by damaging something valid at random; the number of the
chunk is the seed of both. Calls run in processes that are watched from here and replaced when one hangs. A hang is 5
seconds of the processor's time, or 20 of waiting, so that a busy machine makes none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PARTS = {
    "api": 16_000,
    "templates": 1_000,
    "loading": 8_000,
    "command": 8_000,
    "processes": 40,
    "lines": 5_000,
    "presets": 5_000,
    "recipes": 4_000,
    "results": 4_000,
}
"""The parts, and how many calls of each a full run makes."""
CHUNK = 50
SLOW, STUCK = 5.0, 20.0
PROCESSES = "processes"
"""A part whose calls are processes of their own, which take longer to start than a call may take."""


@dataclass
class Tally:
    """What came of the calls of one part; ``unforeseen`` are those that only the last check at a door refused."""

    calls: int = 0
    refused: int = 0
    unforeseen: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    other_calls: int = 0
    hangs: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> int:
        return self.calls - self.refused - self.other_calls - len(self.hangs)

    def add(self, verdict: str, what: str, label: str) -> None:
        self.calls += 1
        if verdict == "refused":
            self.refused += 1
        elif verdict == "unforeseen":
            self.refused += 1
            _keep_shortest(self.unforeseen, what, label)
        elif verdict == "other":
            self.other_calls += 1
            _keep_shortest(self.others, what, label)
        elif verdict == "hang":
            self.hangs.append(label)


def _keep_shortest(examples: dict[str, str], what: str, label: str) -> None:
    if what not in examples or len(label) < len(examples[what]):
        examples[what] = label


def judged(run: Callable[[], object]) -> tuple[str, str]:
    """What came of a call: accepted, refused, unforeseen or other, and the error in the last two cases."""
    from soar_dlm.errors import SoarError, UnexpectedError

    try:
        run()
    except UnexpectedError as error:
        return "unforeseen", where(error.__cause__ or error)
    except SoarError:
        return "refused", ""
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
    told = str(error)[:160] if type(error).__name__ == "NotSoar" else ""
    return f"{type(error).__name__}{place} {told}".strip()


def run_chunk(part: str, number: int, size: int, room: Any, say: Callable[[tuple[Any, ...]], None]) -> None:
    """All calls of a chunk: odd ones by hypothesis, even ones by a generator of random numbers."""
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis import strategies as st

    from benchmarks.malformed.chooser import Chooser, Drawn, Seeded

    make = maker(part)

    def one(choose: Chooser) -> None:
        case = make(choose, room)
        say(("start", case.label))
        say(("end", *judged(case.run), case.label))

    if number % 2 == 0:
        for place in range(size):
            one(Seeded(f"{part}:{number}:{place}"))
        return

    @seed(number)
    @settings(max_examples=size, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def many(data: Any) -> None:
        one(Drawn(data))

    many()


def maker(part: str) -> Callable[[Any, Any], Any]:
    from benchmarks.malformed import calls, commands, files

    return {
        "api": calls.api,
        "templates": calls.templates,
        "loading": files.loading,
        "command": commands.commands,
        "processes": commands.processes,
        "lines": files.lines,
        "presets": files.presets,
        "recipes": files.recipes,
        "results": files.results,
    }[part]


def quiet() -> None:
    """Offline, on one core, without bars and warnings."""
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", NO_COLOR="1", TQDM_DISABLE="1")
    warnings.simplefilter("ignore")


def work(orders: Connection, folder: str) -> None:
    """A worker: runs the chunks that it is sent, and says what it does."""
    quiet()
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    import torch

    from benchmarks.malformed.room import Room

    torch.set_num_threads(1)
    room = Room(Path(folder))
    orders.send(("ready",))
    while True:
        part, number, size = orders.recv()
        run_chunk(part, number, size, room, orders.send)
        orders.send(("done",))


class Worker:
    """A process that runs chunks, and the watch over it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.mkdtemp(prefix="soar-fuzz-")
        self._orders, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, self._folder), daemon=False)
        self._process.start()
        theirs.close()
        assert self._orders.recv() == ("ready",)

    def run(self, part: str, number: int, size: int, tally: Tally) -> bool:
        """Run a chunk; False if the worker had to be killed."""
        self._orders.send((part, number, size))
        label, began, spent = "", time.monotonic(), self._seconds()
        while True:
            if not self._orders.poll(0.25):
                waited, worked = time.monotonic() - began, self._seconds() - spent
                if waited > STUCK * (6 if part == PROCESSES else 1) or worked > SLOW:
                    tally.add("hang", "", label or f"making a case of chunk {number}")
                    self.stop()
                    return False
                continue
            try:
                message = self._orders.recv()
            except EOFError:
                tally.add("other", f"the process died with {self._process.exitcode}", label)
                self.stop()
                return False
            began, spent = time.monotonic(), self._seconds()
            if message[0] == "done":
                return True
            if message[0] == "start":
                label = message[1]
            else:
                tally.add(*message[1:])

    def _seconds(self) -> float:
        """The processor's time that the worker has used."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        shutil.rmtree(self._folder, ignore_errors=True)


def fuzz(part: str, calls: int, first: int = 0) -> Tally:
    """So many calls of a part, from this chunk on; fewer if it is interrupted."""
    tally, number, worker = Tally(), first, Worker()
    try:
        while tally.calls < calls:
            if not worker.run(part, number, min(CHUNK, calls - tally.calls), tally):
                worker = Worker()
            number += 1
    except KeyboardInterrupt:
        print(f"{part}: interrupted; --parts {part} --first {number} continues", file=sys.stderr)
    finally:
        worker.stop()
    return tally


def shown(tallies: dict[str, Tally]) -> str:
    """The table, and the smallest example of everything that must not be."""
    lines = ["| part | calls | refused | places left to the last check | accepted | other exceptions | hangs |"]
    lines.append("|---|---|---|---|---|---|---|")
    for part, tally in tallies.items():
        numbers = (
            tally.calls,
            tally.refused,
            len(tally.unforeseen),
            tally.accepted,
            tally.other_calls,
            len(tally.hangs),
        )
        lines.append(f"| {part} | {' | '.join(f'{number:,}' for number in numbers)} |")
    for part, tally in tallies.items():
        found = [("unforeseen", what, label) for what, label in tally.unforeseen.items()]
        found += [("OTHER", what, label) for what, label in tally.others.items()]
        found += [("HANG", "", label) for label in tally.hangs]
        lines += [f"{part}: {kind} {what}: {label[:400]!r}" for kind, what, label in found]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--calls", type=int, help="calls of each part; default: as many as make 50,000 in all")
    parser.add_argument("--first", type=int, default=0, help="the number of the first chunk, which seeds it")
    given = parser.parse_args()
    quiet()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tallies: dict[str, Tally] = {}
    for part in given.parts:
        began = time.monotonic()
        tallies[part] = fuzz(part, given.calls or PARTS[part], given.first)
        print(f"{part}: {tallies[part].calls} calls in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(shown(tallies))
    raise SystemExit(any(tally.others or tally.hangs for tally in tallies.values()))


if __name__ == "__main__":
    main()
