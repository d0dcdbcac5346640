"""Programs for ``benchmarks.attacks``: attacks of many kinds on the sandbox, and honest programs that must pass in it.

An attack is the body of a function that returns True if it got what it wanted. It may use ``N`` (numbers of system
calls), ``call`` (a system call that raises), ``libc`` and what the runner made for the purpose: ``FILE`` with ``TEXT``
in ``FOLDER``, the processes ``VICTIM`` and ``SOAR`` (the evaluation), ``PORT``, and the names and keys of sockets,
queues and shared memory.
"""

from __future__ import annotations

PRELUDE = """
import ctypes, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.shmat.restype = ctypes.c_void_p
def call(name, *values):
    values = [ctypes.c_long(value) if type(value) is int else value for value in values]
    answer = libc.syscall(ctypes.c_long(N[name]), *values)
    if answer == -1: raise OSError(ctypes.get_errno(), name)
    return answer
def checked(answer):
    if answer == -1: raise OSError(ctypes.get_errno(), "")
    return answer
def path(text): return ctypes.c_char_p(text.encode())
"""

FILES = {
    "read a file": "return TEXT in open(FILE).read()",
    "list a folder": "return os.path.basename(FILE) in os.listdir(FOLDER)",
    "learn that a file exists": "os.stat(FILE); return True",
    "read through a symbolic link": "os.symlink(FILE, 'link'); return TEXT in open('link').read()",
    "read through a hard link": "os.link(FILE, 'hard'); return TEXT in open('hard').read()",
    "read through /proc/self/root": "return TEXT in open('/proc/self/root' + FILE).read()",
    "read through the root of its parent": "return TEXT in open('/proc/%d/root%s' % (os.getppid(), FILE)).read()",
    "read through many ..": "return TEXT in open('../' * 40 + FILE).read()",
    "read through an open folder": """
        for place in range(3, 64):
            try: return TEXT in open(os.open(FILE.lstrip('/'), os.O_RDONLY, dir_fd=place)).read()
            except OSError: pass""",
    "read by mmap": "import mmap; return TEXT.encode() in mmap.mmap(os.open(FILE, os.O_RDONLY), 0, prot=1)[:]",
    "read by its handle": """
        handle, where = (ctypes.c_uint32 * 40)(128), ctypes.c_int()
        call('name_to_handle_at', -100, path(FILE), handle, ctypes.byref(where), 0)
        return TEXT.encode() in os.read(call('open_by_handle_at', -100, handle, 0), 99)""",
    "read by io_uring": "return call('io_uring_setup', 8, (ctypes.c_char * 120)()) > 0",
    "copy to its folder": "import shutil; shutil.copyfile(FILE, 'copy'); return TEXT in open('copy').read()",
    "write a file": "open(FILE, 'w').write('x'); return outside()",
    "append to a file": "open(FILE, 'a').write('x'); return outside()",
    "truncate a file": "os.truncate(FILE, 0); return outside()",
    "remove a file": "os.remove(FILE); return outside()",
    "rename a file": "os.rename(FILE, FILE + '2'); return outside()",
    "replace a file": "open('new', 'w').close(); os.replace('new', FILE); return outside()",
    "change the mode of a file": "os.chmod(FILE, 0o777); return outside()",
    "change the times of a file": "os.utime(FILE, (0, 0)); return outside()",
    "change the owner of a file": "os.chown(FILE, 1, 1); return outside()",
    "mark a file": "os.setxattr(FILE, 'user.soar', b'x'); return outside()",
    "make a file beside it": "open(FOLDER + '/new', 'w').close(); return outside()",
    "make a folder beside it": "os.mkdir(FOLDER + '/newer'); return outside()",
    "write what is mounted below a readable folder": "open(MOUNTED + '/file', 'w').write('x'); return outside()",
    "write beside the interpreter": "open(os.__file__ + '.new', 'w'); return True",
    "change the standard library": "open(os.__file__, 'a'); return True",
    "write to /usr": "open('/usr/soar-attack', 'w'); return True",
    "write to /dev/shm": "open('/dev/shm/soar-attack', 'w'); return True",
    "write to /var/tmp": "open('/var/tmp/soar-attack', 'w'); return True",
    "read the accounts": "return len(open('/etc/passwd').read()) > 0",
    "make a device": "os.mknod('disk', 0o60600, os.makedev(254, 0)); return bool(os.open('disk', os.O_RDONLY))",
    "mount": "return checked(libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)) == 0",
    "make a readable folder writable": "return checked(libc.mount(None, b'/usr', None, 0x1020, None)) == 0",
    "leave its root folder": "os.mkdir('in'); os.chroot('in'); return TEXT in open('../' * 40 + FILE).read()",
    "change the flags of a file": """
        import fcntl
        fcntl.ioctl(os.open(MOUNTED + '/file', os.O_RDONLY), 0x40086602, (128).to_bytes(8, sys.byteorder))
        return True""",
    "list what is mounted": """
        asked, found = (ctypes.c_uint64 * 3)(24, 2**64 - 1, 0), (ctypes.c_uint64 * 64)()
        return call('listmount', asked, found, 64, 0) > 0""",
    "watch a folder": """
        place = checked(libc.inotify_init())
        return checked(libc.inotify_add_watch(place, FOLDER.encode(), 2)) > 0""",
}
PROCESSES = {
    "fork": "return os.fork() >= 0",
    "vfork": "return call('vfork') > 0",
    "clone": "return call('clone', 17, 0, 0, 0, 0) >= 0",
    "clone3": "return call('clone3', (ctypes.c_uint64 * 8)(0, 0, 0, 0, 17), 64) >= 0",
    "spawn a program": "return os.posix_spawn('/bin/true', ['true'], {}) > 0",
    "become a program": "os.execv('/bin/sleep', ['sleep', '0'])",
    "become a program from memory": "os.execve(os.memfd_create('x'), ['x'], {})",
    "subprocess": "import subprocess; return subprocess.run(['/bin/true']).returncode == 0",
    "multiprocessing": "import multiprocessing as m; one = m.Process(target=int); one.start(); return True",
    "a shell": "return os.system('true') == 0",
    "signal the victim": "os.kill(VICTIM, 0); return True",
    "signal the evaluation": "os.kill(SOAR, 0); return True",
    "signal its judge": "os.kill(os.getppid(), 0); return True",
    "signal everybody": "os.kill(-1, 0); return True",
    "signal its group": "os.killpg(0, 0); return True",
    "signal a thread of the judge": "return call('tgkill', os.getppid(), os.getppid(), 0) == 0",
    "signal by tkill": "return call('tkill', VICTIM, 0) == 0",
    "signal by a handle": "signal.pidfd_send_signal(os.pidfd_open(VICTIM), 0); return True",
    "signal with a value": "return call('rt_sigqueueinfo', VICTIM, 0, (ctypes.c_int * 32)(0, 0, -1)) == 0",
    "signal by the owner of a file": """
        import fcntl
        fcntl.fcntl(os.pipe()[0], 8, os.getppid())
        return True""",
    "trace the victim": "return checked(libc.ptrace(16, VICTIM, 0, 0)) == 0",
    "trace its judge": "return checked(libc.ptrace(16, os.getppid(), 0, 0)) == 0",
    "read the victim's memory": "open('/proc/%d/mem' % VICTIM, 'rb'); return True",
    "read the evaluation's memory": "open('/proc/%d/mem' % SOAR, 'rb'); return True",
    "read the judge's memory": "open('/proc/%d/mem' % os.getppid(), 'rb'); return True",
    "read memory by a call": """
        text, far = ctypes.create_string_buffer(8), (ctypes.c_uint64 * 2)(0x400000, 8)
        near = (ctypes.c_uint64 * 2)(ctypes.addressof(text), 8)
        call('process_vm_readv', os.getppid(), near, 1, far, 1, 0)
        return True""",
    "read the evaluation's environment": "return len(open('/proc/%d/environ' % SOAR).read()) >= 0",
    "see the evaluation's command": "return len(open('/proc/%d/cmdline' % SOAR).read()) > 0",
    "see other processes": "return len([one for one in os.listdir('/proc') if one.isdigit()]) > 0",
    "steal an open file": "return call('pidfd_getfd', os.pidfd_open(os.getppid()), 0, 0) >= 0",
    "limit the victim": "import resource; resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (9, 9)); return True",
    "slow the victim down": "os.setpriority(os.PRIO_PROCESS, VICTIM, 19); return True",
    "move the victim": "os.sched_setaffinity(VICTIM, {0}); return True",
    "outlive its judge": "return checked(libc.prctl(1, 0, 0, 0, 0)) == 0",
    "enter the victim's namespace": "return checked(libc.setns(os.pidfd_open(VICTIM), 0x20000)) == 0",
    "make a namespace": "return checked(libc.unshare(0x10000000)) == 0",
    "fork from a subinterpreter": """
        try: import _xxsubinterpreters as sub
        except ImportError: import _interpreters as sub
        sub.run_string(sub.create(), "import ctypes; open('done', 'w').write(str(ctypes.CDLL(None).fork()))")
        return int(open('done').read()) >= 0""",
}
NETWORK = {
    "connect by TCP": "socket.create_connection(('127.0.0.1', PORT), 1); return True",
    "send by UDP": "return socket.socket(2, 2).sendto(b'x', ('127.0.0.1', PORT)) == 1",
    "listen": "one = socket.socket(); one.bind(('127.0.0.1', 0)); one.listen(); return True",
    "connect to a socket in a folder": "one = socket.socket(1); one.connect(SOCKET); return True",
    "connect to an abstract socket": "one = socket.socket(1); one.connect(ABSTRACT); return True",
    "talk to the kernel by netlink": "one = socket.socket(16, 3, 0); one.bind((0, 0)); return True",
    "a raw socket": "return bool(socket.socket(2, 3, 1))",
    "a packet socket": "return bool(socket.socket(17, 3, 3))",
    "a socket from a pair": "one, two = socket.socketpair(); one.connect(ABSTRACT); return True",
    "send from a pair to a socket in a folder": "return socket.socketpair(1, 2)[0].sendto(b'x', MAILBOX) == 1",
    "send from a pair to an abstract socket": "return socket.socketpair(1, 2)[0].sendto(b'x', ABSTRACT + 'm') == 1",
    "load a program into the kernel": "return call('bpf', 0, (ctypes.c_char * 72)(1), 72) >= 0",
}
SHARED = {
    "attach shared memory": "return checked(libc.shmat(checked(libc.shmget(KEY, 0, 0)), None, 0) or 0) > 0",
    "make shared memory": "return checked(libc.shmget(0, 4096, 0o1600)) >= 0",
    "read a message queue": "return checked(libc.msgget(KEY, 0)) >= 0",
    "make a message queue": "return checked(libc.msgget(0, 0o1600)) >= 0",
    "make semaphores": "return checked(libc.semget(0, 1, 0o1600)) >= 0",
    "make a named queue": "return call('mq_open', path('soar-attack'), 0o102, 0o600, None) >= 0",
    "add a key": "return call('add_key', path('user'), path('soar'), path('x'), 1, -3) > 0",
    "ask for a key": "return call('keyctl', 0, -4, 0, 0, 0) > 0",
    "memory as a file": "place = os.memfd_create('x'); return os.write(place, b'x') == 1",
    "secret memory": "return call('memfd_secret', 0) >= 0",
}
LIMITS = {
    "two gigabytes": "return len(bytearray(2**31)) > 0",
    "two gigabytes by mmap": "import mmap; return len(mmap.mmap(-1, 2**31)) > 0",
    "two gigabytes as a file in memory": """
        place = os.memfd_create('x')
        for _ in range(2048): os.write(place, bytes(2**20))
        return True""",
    "four gigabytes in pieces": "kept = [bytes(2**20) for _ in range(4096)]; return True",
    "a large file": "return open('large', 'wb').write(bytes(2**24)) > 0",
    "many files": """
        for number in range(64): open(str(number), 'wb').write(bytes(2**20 - 1))
        return True""",
    "a thousand open files": "kept = [os.open('/dev/null', 0) for _ in range(1000)]; return True",
    "a hundred pipes": "kept = [os.pipe() for _ in range(100)]; return True",
    "ten thousand threads": """
        import threading
        threading.stack_size(65536)
        for _ in range(10000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        return True""",
    "raise its limits": "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40)); return True",
    "ignore its CPU limit": "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
    "run without end": "while True: pass",
    "run without end in C": "return sum(range(10**12)) > 0",
    "sleep": "signal.alarm(0); time.sleep(600); return True",
    "return ten megabytes": "return 'x' * 10**7",
    "a bomb of forks": "while True:\n    try: os.fork()\n    except OSError: pass",
    "lock memory": "return checked(libc.mlockall(3)) == 0",
    "crash": "ctypes.string_at(0); return True",
}  # fmt: skip
KINDS = {"files": FILES, "processes": PROCESSES, "network": NETWORK, "shared memory": SHARED, "limits": LIMITS}

WRONG = "def add(a, b): return 99\n"
FORGERIES = {
    "an object that equals everything": (
        "class Any:\n    def __eq__(self, other): return True\n    __lt__ = __gt__ = __ne__ = __eq__\n"
        "    def __sub__(self, other): return self\n    def __abs__(self): return self\n"
        "    def __bool__(self): return True\n"
        "    def __float__(self): return 4.0\n    def __hash__(self): return 0\ndef add(a, b): return Any()\n"
    ),
    "mock.ANY": "from unittest.mock import ANY\ndef add(a, b): return ANY\n",
    "MagicMock": "from unittest.mock import MagicMock\nadd = MagicMock()\n",
    "a number that equals everything": (
        "class Any(int):\n    def __eq__(self, other): return True\n    def __sub__(self, other): return 0\n"
        "    def __hash__(self): return 0\ndef add(a, b): return Any(99)\n"
    ),
    "a list that contains everything": (
        "class Any(list):\n    def __eq__(self, other): return True\n    def __contains__(self, one): return True\n"
        "def add(a, b): return Any()\n"
    ),
    "its own abs": "abs = lambda value: 0\n" + WRONG,
    "its own abs for all": "import builtins\nbuiltins.abs = lambda value: 0\n" + WRONG,
    "its own isclose": "import math\nmath.isclose = lambda *_: True\n" + WRONG,
    "its own AssertionError": "import builtins\nbuiltins.AssertionError = Exception\n" + WRONG,
    "its own exec": "import builtins\nbuiltins.exec = builtins.compile = lambda *_: None\n",
    "its own check": "def check(*_): pass\n",
    "sys.exit": "import sys\nsys.exit(0)\n",
    "os._exit": "import os\nos._exit(0)\n",
    "SystemExit in the function": "def add(a, b): raise SystemExit(0)\n",
    "StopIteration": "def add(a, b): raise StopIteration\n",
    "a frame": "import sys\nsys._getframe(1).f_locals['tests'] = ''\n" + WRONG,
    "a frame of a signal handler": (
        "import signal\ndef look(number, frame):\n    while frame:\n        for name in list(frame.f_globals):\n"
        "            if name in ('by_tests', 'found'): frame.f_globals[name] = lambda *_: ('passed', [])\n"
        "        frame = frame.f_back\nsignal.signal(14, look)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
        + WRONG
    ),
    "a trace": "import sys\nsys.settrace(lambda *_: None)\n" + WRONG,
    "garbage collected objects": "import gc\n[one.clear() for one in gc.get_objects() if type(one) is list]\n" + WRONG,
    "ctypes": "import ctypes\nctypes.memset(id(3) + 24, 99, 1)\n" + WRONG,
    "a message of its own": (
        "import os\nsaid = b'[\"passed\"]'\nfor place in range(3, 64):\n"
        "    try: os.write(place, len(said).to_bytes(8, 'big') + said)\n    except OSError: pass\n" + WRONG
    ),
    "a verdict of its own": (
        "import os, sys\npack = sys.modules['soar_dlm.tasks.sandbox.values'].pack\nsaid = pack(('passed', [], []))\n"
        "for place in range(64):\n    try: os.write(place, len(said).to_bytes(8, 'big') + said)\n"
        "    except OSError: pass\n" + WRONG
    ),
    "the judge's own code": (
        "import sys\njudge = sys.modules['soar_dlm.tasks.sandbox.judge']\njudge.by_tests = lambda *_: ('passed', [])\n"
        + WRONG
    ),
    "a subinterpreter": "import _xxsubinterpreters as s\ns.run_string(s.create(), 'import ctypes')\n" + WRONG,
    "an exception with a pretended name": "class Fine(AssertionError): pass\ndef add(a, b): raise Fine\n",
    "a change of the arguments": "def add(a, b):\n    return [3, 4, 0]\n",
    "nothing at all": "",
    "no Python": "def add(a, b:\n",
}  # fmt: skip
"""Wrong programs that try to pass the tests of a function ``add``."""

HONEST = {
    "arithmetic": "return sum(n * n for n in range(10)) == 285",
    "large numbers": "return 2 ** 5000 % 97 >= 0",
    "strings": "return ' '.join(reversed('a b c'.split())) == 'c b a'",
    "unicode": "return 'é'.encode() == b'\\xc3\\xa9'",
    "collections": """
        from collections import Counter, deque
        return Counter('aab').most_common(1) == [('a', 2)] and deque([1]).pop() == 1""",
    "itertools": "import itertools as i; return len(list(i.permutations(range(5)))) == 120",
    "functools": "import functools as f; return f.reduce(lambda a, b: a * b, range(1, 6)) == 120",
    "a cache": """
        from functools import lru_cache
        @lru_cache(None)
        def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)
        return fib(90) > 0""",
    "heapq and bisect": """
        import heapq, bisect
        return heapq.nsmallest(2, [3, 1, 2]) == [1, 2] and bisect.bisect([1, 3], 2) == 1""",
    "regular expressions": "import re; return re.findall(r'\\d+', 'a1b22') == ['1', '22']",
    "json": "import json; return json.loads(json.dumps({'a': [1, None]})) == {'a': [1, None]}",
    "dates": "import datetime as d; return (d.date(2024, 3, 1) - d.date(2024, 2, 28)).days == 2",
    "the clock": "import time; return time.time() > 0 and time.localtime().tm_year > 2000 and time.perf_counter() >= 0",
    "random numbers": """
        import random
        random.seed(1)
        return 0 <= random.random() < 1 and random.SystemRandom().random() < 1""",
    "decimals and fractions": """
        from decimal import Decimal as D
        from fractions import Fraction as F
        return D('0.1') * 3 == D('0.3') and F(1, 3) * 3 == 1""",
    "statistics and cmath": """
        import statistics, cmath; return statistics.median([3, 1, 2]) == 2 and abs(cmath.sqrt(-1)) == 1""",
    "hashes": """
        import hashlib, zlib, base64
        return hashlib.sha256(b'').hexdigest()[:4] == 'e3b0' and zlib.crc32(b'') == 0""",
    "a dataclass": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1\nreturn P() == P(1)",
    "an enum": "from enum import Enum\nclass C(Enum):\n    A = 1\nreturn C(1) is C.A",
    "types": """
        from typing import NamedTuple, get_type_hints
        class P(NamedTuple):
            x: int
        return get_type_hints(P)['x'] is int""",
    "an abstract class": """
        from abc import ABC, abstractmethod
        class A(ABC):
            @abstractmethod
            def f(self): ...
        try: A()
        except TypeError: return True""",
    "exceptions": "try:\n    raise ValueError('x') from KeyError()\nexcept ValueError as e: return str(e) == 'x'",
    "generators": "def g():\n    got = yield 1\n    yield got\none = g(); next(one); return one.send(2) == 2",
    "a context manager": "import contextlib\nwith contextlib.suppress(ZeroDivisionError): 1 / 0\nreturn True",
    "threads": """
        import threading
        found = []
        all_ = [threading.Thread(target=found.append, args=(n,)) for n in range(20)]
        [t.start() for t in all_], [t.join() for t in all_]
        return len(found) == 20""",
    "a pool of threads": """
        from concurrent.futures import ThreadPoolExecutor as P
        with P(4) as p: return list(p.map(abs, [-1, -2])) == [1, 2]""",
    "a queue and a timer": """
        import queue, threading
        q = queue.Queue(); threading.Timer(0.001, q.put, (1,)).start(); return q.get(timeout=2) == 1""",
    "asyncio": "import asyncio\nasync def one(): await asyncio.sleep(0); return True\nreturn asyncio.run(one())",
    "traceback": """
        import traceback
        try: 1 / 0
        except ZeroDivisionError: return 'ZeroDivision' in traceback.format_exc()""",
    "doctest": "import doctest; return doctest.testmod().failed == 0",
    "unittest": """
        import unittest
        class T(unittest.TestCase):
            def test(self): self.assertEqual(1, 1)
        return unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T)).wasSuccessful()""",
    "inspect.stack": "import inspect; return inspect.stack()[0].function == 'solve'",
    "its own source": "import inspect; return 'def solve' in inspect.getsource(solve)",
    "logging and warnings": "import logging, warnings; logging.warning('x'); warnings.warn('x'); return True",
    "printing": "import sys; print('x' * 100000); print('y', file=sys.stderr); sys.stdout.flush(); return True",
    "reading input": "import sys; return sys.stdin.read() == ''",
    "a file": "open('own.txt', 'w').write('x'); return open('own.txt').read() == 'x'",
    "a temporary file": """
        import tempfile, os
        with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w').close(); return os.listdir(d) == ['x']""",
    "csv and io": "import csv, io; return list(csv.reader(io.StringIO('a,b'))) == [['a', 'b']]",
    "sqlite in memory": "import sqlite3; return sqlite3.connect(':memory:').execute('select 1').fetchone() == (1,)",
    "pickle and copy": """
        import pickle, copy; return pickle.loads(pickle.dumps({1})) == {1} and copy.deepcopy([[1]]) == [[1]]""",
    "a signal handler": """
        import signal
        got = []
        signal.signal(10, lambda *_: got.append(1))
        signal.raise_signal(10)
        return got == [1]""",
    "garbage collection": "import gc, weakref; gc.collect(); return gc.isenabled()",
    "ctypes": "import ctypes; return ctypes.c_int(3).value == 3",
    "deep recursion": "def down(n): return n and 1 + down(n - 1)\nreturn down(900) == 900",
    "100 megabytes": "return len(bytearray(100 * 2**20)) > 0",
    "numpy": "import numpy; return bool(numpy.linalg.det(numpy.eye(3)) == 1.0)",
    "system facts": """
        import platform, os
        return bool(platform.python_version()) and os.cpu_count() != 0 and os.getpid() > 0""",
}  # fmt: skip
