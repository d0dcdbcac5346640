"""``python -m soar_dlm.models.follower FD``: a process of a split model, started by a Team.

1. It is told its part, finds the checkpoint and answers; then all processes meet and load, and it answers again.
2. After that it runs what it is told, and answers each time: None, or an error. One that is out of step ends.
3. A thread of its own reads the line. When the line ends, the process does, whatever it is doing.
"""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch

from soar_dlm.models.parallel import find_part
from soar_dlm.models.sums import OutOfStep
from soar_dlm.models.team import Part, sent


def follow(line: Connection) -> None:
    heard: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(line, heard), daemon=True).start()
    part: Part = heard.get()
    torch.set_num_threads(part.threads)
    try:
        load = find_part(part)
        _answer(line, None)
        part.join()
        model = load()
    except Exception as error:
        _answer(line, sent(error, part.rank))
        return
    _answer(line, None)
    while True:
        call = heard.get()
        failed: Exception | None = None
        try:
            model.run(call)
        except OutOfStep as error:
            sys.stderr.write(f"{error}\n")
            os._exit(1)
        except Exception as error:
            failed = sent(error, part.rank)
        if failed is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()
        _answer(line, failed)


def _listen(line: Connection, heard: SimpleQueue[Any]) -> None:
    try:
        while True:
            heard.put(pickle.loads(line.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


def _answer(line: Connection, error: Exception | None) -> None:
    try:
        line.send_bytes(pickle.dumps(error))
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    follow(Connection(int(sys.argv[1])))
