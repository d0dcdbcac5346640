"""What one program may use."""

from __future__ import annotations

from dataclasses import dataclass

from soar_dlm.checks import real_number, whole_number


@dataclass(frozen=True)
class Limits:
    """What one program may use.

    ``wall_seconds`` start when the sandbox is ready. ``output_bytes`` limits the returned values; what the program
    prints is discarded. ``file_bytes`` limits each file, ``disk_bytes`` everything it writes, where it has a file
    system of its own. ``threads`` are counted where the program has a user of its own; elsewhere memory limits them. A
    program cannot start processes.
    """

    wall_seconds: float = 4.0
    cpu_seconds: int = 2
    memory_bytes: int = 512 * 2**20
    file_bytes: int = 2**20
    open_files: int = 64
    threads: int = 64
    output_bytes: int = 2**20
    disk_bytes: int = 16 * 2**20

    def __post_init__(self) -> None:
        real_number("wall_seconds", self.wall_seconds, 0, 3600, open_low=True)
        whole_number("cpu_seconds", self.cpu_seconds, 1)
        whole_number("memory_bytes", self.memory_bytes, 32 * 2**20)
        whole_number("file_bytes", self.file_bytes, 0)
        whole_number("open_files", self.open_files, 64)
        whole_number("threads", self.threads, 8)
        whole_number("output_bytes", self.output_bytes, 64)
        whole_number("disk_bytes", self.disk_bytes, 0)

    def for_child(self) -> list[tuple[str, int, int]]:
        """Names of the ``resource`` module, each with its soft and hard limit."""
        return [
            ("RLIMIT_CORE", 0, 0),
            ("RLIMIT_CPU", self.cpu_seconds, self.cpu_seconds + 1),
            ("RLIMIT_AS", self.memory_bytes, self.memory_bytes),
            ("RLIMIT_FSIZE", self.file_bytes, self.file_bytes),
            ("RLIMIT_NOFILE", self.open_files, self.open_files),
            ("RLIMIT_MEMLOCK", 0, 0),
            ("RLIMIT_MSGQUEUE", 0, 0),
        ]
