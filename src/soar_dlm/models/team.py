"""The other processes of a split model: how they start, what they are told, and how they end."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import timedelta
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed import FileStore  # type: ignore[attr-defined]
from transformers.distributed import DistributedConfig

from soar_dlm.errors import EngineStopped, SettingsError, SoarError, told
from soar_dlm.models.sums import OutOfStep

LONGEST_WAIT = 300
"""Seconds that a process waits for another in a sum, or for an answer, before it is given up."""
SHORT_WAIT = 5
"""Seconds that a process has to end when it is told to, or when another one has."""
LOADING = 7200
"""Seconds that loading may take; a process that dies is noticed at once."""
PACKAGES = str(Path(__file__).parents[2])
_LOOPBACK = ("lo", "lo0")
_INTERFACE = "GLOO_SOCKET_IFNAME"


@dataclass(frozen=True)
class Part:
    """What a process that follows has to know: its number, where the others are found, and what it loads."""

    rank: int
    processes: int
    store: str
    threads: int
    name: str
    placement: Mapping[str, Any]
    access: Mapping[str, Any]

    def join(self) -> None:
        """Meet the other processes; returns when all are there."""
        kind = torch.accelerator.current_accelerator(check_available=True)
        if kind is not None:
            torch.accelerator.set_device_index(self.rank)
        backend = "gloo" if kind is None else distributed.get_default_backend_for_device(kind)
        distributed.init_process_group(
            backend,
            store=FileStore(self.store, self.processes),
            rank=self.rank,
            world_size=self.processes,
            timeout=timedelta(seconds=LONGEST_WAIT),
            device_id=torch.device(kind.type, self.rank) if kind is not None and backend == "nccl" else None,
        )

    def placed(self, whole: Sequence[str]) -> dict[str, Any]:
        """The arguments of from_pretrained with which each process reads its part; ``whole`` modules are not split."""
        plan = dict.fromkeys(whole, "replicate")
        return {**self.placement, "distributed_config": DistributedConfig(tp_size=self.processes, tp_plan=plan)}


class Team:
    """The processes that follow, each on a line of its own.

    1. They are started here and meet through a folder and, on a CPU, the loopback interface; no port is opened to
       others.
    2. A process ends when its line does: when this one closes it or ends, however that comes about.
    3. One that ends by itself is noticed when it is next told something or asked for an answer: the others are ended,
       and :class:`EngineStopped` says why, then and whenever the model is used again.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self._gone: str | None = None
        self._folder = Path(part.store).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lines: list[Connection] = []
        self._ending = weakref.finalize(self, _end, os.getpid(), self._processes, self._lines, self._folder)

    @classmethod
    @contextmanager
    def loading(
        cls, processes: int, name: str, placement: Mapping[str, Any], access: Mapping[str, Any]
    ) -> Iterator[Team]:
        """A team that loads the model while its own part is loaded inside; where that fails, it ends."""
        folder = tempfile.mkdtemp(prefix="soar-")
        part = Part(0, processes, f"{folder}/store", torch.get_num_threads(), name, placement, access)
        team = cls(part)
        try:
            with _on_loopback() as interface:
                for rank in range(1, processes):
                    team._start(rank, interface)
                team._answers(LOADING)  # they have found the checkpoint
                part.join()
                yield team
                team._answers(LOADING)  # they have loaded it
        except BaseException:
            team.close()
            raise

    def _start(self, rank: int, interface: Mapping[str, str]) -> None:
        own, theirs = Pipe()
        log = (self._folder / f"{rank}.log").open("wb")
        with theirs, log:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "soar_dlm.models.follower", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **interface, **_surroundings(rank)},
                    start_new_session=True,  # Ctrl-C is for this process to answer
                )
            )
        self._lines.append(own)
        self._tell(Part(**{**_entries(self.part), "rank": rank}), [own])

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    @contextmanager
    def told(self, what: Any) -> Iterator[None]:
        """Tell all processes to do what is done inside, and wait until they have.

        The error of one is raised here, unless there is one here already.
        """
        if self._gone is not None:
            raise EngineStopped(self._gone)
        self._tell(what, self._lines)
        try:
            yield
        except OutOfStep as error:
            self._look_for_the_dead()
            self._give_up(f"The processes of a split model lost each other ({error}). Load it again.")
            raise EngineStopped(self._gone) from error
        except Exception:
            self._answers(LONGEST_WAIT, raised=True)
            raise
        except BaseException:  # nobody knows how far each has come
            self._give_up("A split model was interrupted in the middle of a forward. Load it again.")
            raise
        self._answers(LONGEST_WAIT)

    def _tell(self, what: Any, lines: Sequence[Connection]) -> None:
        message = pickle.dumps(what)
        for line in lines:
            try:
                line.send_bytes(message)
            except OSError:
                self._lost(line)

    def _answers(self, longest: float, raised: bool = False) -> None:
        """Wait for an answer from each process; the first that is an error is raised, unless one was raised here."""
        errors: list[Exception] = []
        for line in self._lines:
            try:
                if not line.poll(longest):
                    self._lost(line)
                error = pickle.loads(line.recv_bytes())
            except (EOFError, OSError):
                self._lost(line)
            else:
                errors += [error] if error is not None else []
        if errors and not raised:
            raise errors[0]

    def _lost(self, line: Connection) -> None:
        """Give up, because there is nobody at the end of a line any more."""
        number = self._lines.index(line)
        with suppress(subprocess.TimeoutExpired):
            self._processes[number].wait(SHORT_WAIT)
        how = _how_it_ended(self._processes[number].returncode, self._folder / f"{number + 1}.log")
        self._give_up(
            f"Process {number + 2} of {self.part.processes}, which had a part of {self.part.name!r}, {how}. Load the "
            "model again."
        )
        raise EngineStopped(self._gone)

    def _look_for_the_dead(self) -> None:
        """Say of a process that has ended, or is about to, how it did."""
        for line in wait(self._lines, SHORT_WAIT):
            assert isinstance(line, Connection)
            try:
                line.recv_bytes()
            except (EOFError, OSError):
                self._lost(line)

    def _give_up(self, why: str) -> None:
        self.close()
        self._gone = why

    def close(self) -> None:
        """End the processes."""
        self._gone = self._gone or f"The model {self.part.name!r} has been closed. Load it again."
        self._ending()


def check_possible(processes: int, device: torch.device | None) -> None:
    """Refuse a team that this machine, this process or this version of transformers cannot have."""
    if os.name != "posix" or not distributed.is_available():
        raise SettingsError("tensor_parallel needs Linux, or macOS without an accelerator. Leave it out.")
    if "tp_size" not in {entry.name for entry in fields(DistributedConfig)}:
        raise SettingsError("tensor_parallel needs a newer transformers: pip install -U transformers")
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise SettingsError(
            "tensor_parallel starts its processes itself. Run the command alone, without torchrun or accelerate launch."
        )
    found = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    if found.type == "mps" or (device is not None and (device.type != found.type or device.index)):
        raise SettingsError(
            f"tensor_parallel uses the devices of kind {found.type!r} from the first on. Leave device out, and hide "
            "those that it must not use, such as with CUDA_VISIBLE_DEVICES."
        )
    if found.type != "cpu" and processes > torch.accelerator.device_count():
        raise SettingsError(
            f"tensor_parallel={processes} needs as many devices, and there are {torch.accelerator.device_count()}."
        )
    if distributed.is_initialized():
        gc.collect()  # a model that nobody uses any more
    if distributed.is_initialized():
        raise SettingsError(
            "This process has a process group already, as of another model with tensor_parallel. Close that one first: "
            "lm.close()."
        )


@contextmanager
def _on_loopback() -> Iterator[dict[str, str]]:
    """Let gloo use the loopback interface, unless the user has chosen another; gives what others need for that."""
    here = [name for _, name in socket.if_nameindex() if name in _LOOPBACK]
    if _INTERFACE in os.environ or not here:
        yield {}
        return
    os.environ[_INTERFACE] = here[0]
    try:
        yield {_INTERFACE: here[0]}
    finally:
        os.environ.pop(_INTERFACE, None)


def _surroundings(rank: int) -> dict[str, str]:
    """What a process that follows finds in its environment: this package, and which device is its own."""
    path = os.pathsep.join(filter(None, [PACKAGES, os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "LOCAL_RANK": str(rank)}


def _entries(part: Part) -> dict[str, Any]:
    return {entry.name: getattr(part, entry.name) for entry in fields(part)}


def _how_it_ended(code: int | None, log: Path) -> str:
    if code is None:
        return f"has not answered for {LONGEST_WAIT} seconds"
    if code < 0:
        with suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return f"has ended with exit code {code} ({last[:200]})"


def sent(error: Exception, rank: int) -> Exception:
    """An error as it goes to the process that leads: what running out of memory is called there stays recognizable."""
    if isinstance(error, SoarError):
        return error
    text = f"{told(error)} (in process {rank + 1} of a split model)"
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return MemoryError(text)
    return RuntimeError(f"{type(error).__name__}: {text}")


def _end(owner: int, processes: Sequence[subprocess.Popen[bytes]], lines: Sequence[Connection], folder: Path) -> None:
    if os.getpid() != owner:  # a fork of this process has no part in it
        return
    for line in lines:
        line.close()
    for process in processes:
        try:
            process.wait(SHORT_WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    with suppress(Exception):
        distributed.destroy_process_group()
    shutil.rmtree(folder, ignore_errors=True)
