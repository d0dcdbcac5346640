"""The sandbox proves itself before it judges: honest programs pass in it, and programs that try to get out do not."""

from __future__ import annotations

import os
import textwrap
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from secrets import token_hex

from soar_dlm.tasks.execution import Limits, run_cases
from soar_dlm.tasks.sandbox.launch import Sandbox
from soar_dlm.tasks.sandbox.places import folder, readable
from soar_dlm.tasks.sandbox.walls import Wall

GENEROUS = Limits(wall_seconds=30.0, cpu_seconds=10)

HONEST = {
    "adds numbers": "return 1 + 1 == 2",
    "uses threads": """
        import threading
        found = []
        threads = [threading.Thread(target=found.append, args=(n,)) for n in range(8)]
        [one.start() for one in threads], [one.join() for one in threads]
        return sorted(found) == list(range(8))""",
    "prints a traceback": """
        import traceback
        try: 1 / 0
        except ZeroDivisionError: return "ZeroDivisionError" in traceback.format_exc()""",
    "looks at its stack": "import inspect\nreturn inspect.stack()[0].function == 'solve'",
    "runs its doctests": "import doctest\nreturn doctest.testmod().failed == 0",
    "imports much of the standard library": """
        import asyncio, collections, csv, dataclasses, datetime, decimal, enum, fractions, functools, hashlib, heapq
        import itertools, json, math, random, re, statistics, string, tempfile, typing, unittest
        return hashlib.md5(b'').hexdigest().startswith('d41d')""",
    "writes a file of its own": """
        import tempfile
        with tempfile.TemporaryFile("w+") as file:
            file.write("x")
            file.seek(0)
            return file.read() == "x" """,
    "recurses deeply": "def down(n): return n and 1 + down(n - 1)\nreturn down(900) == 900",
}
"""Bodies of functions that return True, named by what they do."""

NUMPY = "import numpy\nreturn int(numpy.arange(5).dot(numpy.ones(5))) == 10"

ATTACKS: dict[Wall, dict[str, str]] = {
    "files": {
        "see your files": "1 / ({name!r} in os.listdir({place!r}))",
        "read your files": "1 / ({text!r} in open({secret!r}).read())",
        "write beside the interpreter": "[open(path + '/soar-test', 'w') for path in {folders!r}]",
    },
    "processes": {
        "signal the evaluation": "os.kill({parent}, 0)",
        "read the memory of the evaluation": "open('/proc/{parent}/mem', 'rb')",
        "read the memory of its judge": "open('/proc/%d/mem' % os.getppid(), 'rb')",
    },
    "calls": {
        "start a process": "os.fork() or os._exit(0)",
        "start a program": "os.posix_spawn('/bin/true', ['true'], {{}})",
        "open a socket": "import socket; socket.socket()",
        "signal its judge": "os.kill(os.getppid(), 0)",
        "share memory with other programs": "import ctypes; 1 / (ctypes.CDLL(None).shmget(0, 4096, 0o1600) + 1)",
        "hold memory beyond its limit": "os.memfd_create('x')",
        "open files without end": "[os.dup(1) for _ in range(1000)]",
    },
}
"""By wall: what must raise an error, named by what a program could do if it did not."""

HARMS = {
    "change your files": "open({secret!r}, 'a').write('x')",
    "remove your files": "os.remove({secret!r})",
    "change the modes of your files": "os.chmod({secret!r}, 0o777)",
}
"""What must leave no mark outside; in a root folder of its own a program may well do such things."""


@cache
def faults(sandbox: Sandbox) -> tuple[str, ...]:
    """What is wrong with the sandbox on this machine, as clauses; nothing if it can be relied on."""
    jobs = [(name, body) for name, body in (HONEST | _with_packages()).items()]
    with ThreadPoolExecutor(2) as workers:
        whys = list(workers.map(lambda job: honest(job[1], sandbox), jobs))
        endless = workers.submit(run_cases, "def solve():\n    while True: pass\n", "solve", [[[], None]],
                                 limits=Limits(wall_seconds=0.3), sandbox=sandbox)  # fmt: skip
        escaped = attacks(sandbox) if sandbox.strict else []
    wrong = [f"a right program that {name} is judged wrong ({why})" for (name, _), why in zip(jobs, whys, strict=True)
             if why != "passed"]  # fmt: skip
    wrong += [f"a program can {name}" for name in escaped]
    return (*wrong, *(["a program can run without end"] if endless.result().why != "timeout" else []))


def honest(body: str, sandbox: Sandbox) -> str:
    program = "def solve():\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    return run_cases(program, "solve", [[[], True]], limits=GENEROUS, sandbox=sandbox).why


def _with_packages() -> dict[str, str]:
    return {"uses numpy": NUMPY} if list(folder().packages.iterdir()) else {}


def attacks(sandbox: Sandbox) -> list[str]:
    """What a program can do although a wall stands that should keep it from that."""
    place = folder().path / "secrets"
    place.mkdir(exist_ok=True)
    secret, text = place / token_hex(8), token_hex(16)
    secret.write_text(text)
    secret.chmod(0o600)
    known = {
        "name": secret.name,
        "place": str(place),
        "secret": str(secret),
        "text": text,
        "parent": os.getpid(),
        "folders": [path for path in readable() if os.path.isdir(path)],
    }
    absent = run_cases("def solve(): pass\n", "solve", [[[], None]], limits=GENEROUS, sandbox=sandbox).missing
    tries = {name: text for wall, own in ATTACKS.items() if wall not in absent for name, text in own.items()}
    lines = ["import os", "def solve():", "    done = []"]
    for name, line in (tries | HARMS).items():
        lines += ["    try:", f"        {line.format(**known)}", f"        done.append({name!r})"]
        lines += ["    except Exception: pass"]
    lines += ["    return done"]
    why, answers, _ = sandbox.run(("cases", "\n".join(lines), "solve", [[]]), GENEROUS)
    if why != "passed":
        return [f"break the self-test ({why})"]
    unharmed = secret.exists() and secret.read_text() == text and secret.stat().st_mode & 0o777 == 0o600
    return [name for name in answers[0] if name in tries] + ([] if unharmed else ["change your files"])
