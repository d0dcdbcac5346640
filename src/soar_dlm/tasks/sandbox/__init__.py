"""The sandbox for programs that a model wrote and nobody has read.

One process tree for each program::

    soar ── launcher ── judge ── program

The launcher is a bare interpreter, started inside bubblewrap where that is installed. It builds the walls that are
still missing (namespaces, Landlock, limits) and forks. The program's process gets the text of the program and the
arguments of each call, nothing else: no expected value is ever in its memory. The judge's process runs the tests; it
executes nothing of the program and receives plain values alone, over a pipe. Both end with their parent, at their own
time limit, or when the wall clock outside says so.

Modules of the inside (``kernel`` to ``child``) run in the bare interpreter and import nothing but what it has at hand:
start-up is most of the cost of a short program. The parent sends them as compiled code.
"""
