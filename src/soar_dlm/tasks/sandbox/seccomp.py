"""A filter for system calls: no new processes, programs or sockets, no way to other processes. Runs inside the sandbox.

A call that is barred fails with "not permitted"; one that is newer than this list does not exist. Threads can be
started and a process may signal itself.
"""

from __future__ import annotations

import ctypes
import os
import sys

from soar_dlm.tasks.sandbox.kernel import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    Calls = dict[str, tuple[int, int | None]]

# The number of each call on x86_64, and on all machines that came after it (None: they don't have it).
PROCESSES: Calls = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "ptrace": (101, 117), "kcmp": (312, 272),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "move_pages": (279, 239), "migrate_pages": (256, 238), "setpriority": (141, 140),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
}  # fmt: skip
NETWORK: Calls = {"socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201)}
SHARED_MEMORY: Calls = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183), "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}  # fmt: skip
NAMESPACES: Calls = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "move_mount": (429, 429), "open_tree": (428, 428), "open_tree_attr": (467, 467),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
}  # fmt: skip
KERNEL: Calls = {
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "acct": (163, 89),
    "quotactl": (179, 60), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None),
    "ioperm": (173, None), "personality": (135, 92), "vhangup": (153, 58), "inotify_init": (253, None),
    "inotify_init1": (294, 26), "fanotify_init": (300, 262), "lookup_dcookie": (212, 18), "modify_ldt": (154, None),
    "uselib": (134, None), "ustat": (136, None), "sysfs": (139, None), "quotactl_fd": (443, 443),
    "statmount": (457, 457), "listmount": (458, 458),
}  # fmt: skip
MARKS: Calls = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466), "truncate": (76, 45),
}  # fmt: skip
"""Changes to files that Landlock lets pass; barred where the program has no root folder of its own."""
BY_ARGUMENT: Calls = {
    "clone": (56, 220), "clone3": (435, 435), "kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122), "prctl": (157, 167), "fcntl": (72, 25), "ioctl": (16, 29),
    "socketpair": (53, 199),
}  # fmt: skip
"""Calls that are barred or not depending on an argument; see :func:`filter_code`."""

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3, "loongarch64": 0xC0000102}
"""The machines whose numbers these are, each with its name in the kernel."""
NEWEST = 468
THREAD = 0x10000
FILE_FLAGS = (0x40086602, 0x401C5820)
"""Requests that change the flags of a file of one's own, even if it can only be read."""
LOAD, EQUAL, AT_LEAST, HAS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, BAR, ABSENT = 0x7FFF0000, 0x50001, 0x50026

Instruction = tuple[int, int, int, int]


def numbers(machine: str, table: Calls) -> list[int]:
    found = [pair[0 if machine == "x86_64" else 1] for pair in table.values()]
    return [number for number in found if number is not None]


def filter_code(machine: str, pid: int, barred: list[int]) -> list[Instruction]:
    """The filter as the kernel's instructions: (operation, jump if true, jump if false, value)."""
    code = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, MACHINES[machine]), (RETURN, 0, 0, BAR), (LOAD, 0, 0, 0)]
    code += [(AT_LEAST, 0, 1, NEWEST), (RETURN, 0, 0, ABSENT)]  # also the x32 interface, whose numbers are very large
    special = {name: numbers(machine, {name: pair})[0] for name, pair in BY_ARGUMENT.items()}
    code += [(EQUAL, 0, 1, special["clone3"]), (RETURN, 0, 0, ABSENT)]  # its flags cannot be read; clone is used then
    for name, argument, operation, value in (
        ("clone", 0, HAS, THREAD),
        ("kill", 0, EQUAL, pid),
        ("tgkill", 0, EQUAL, pid),
        ("prlimit64", 0, EQUAL, 0),
        ("sched_setaffinity", 0, EQUAL, 0),
    ):
        code += [(EQUAL, 0, 4, special[name]), (LOAD, 0, 0, 16 + 8 * argument), (operation, 0, 1, value)]
        code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, BAR)]
    for name, argument, operation, values in (
        ("prctl", 0, EQUAL, (1,)),  # outliving the parent
        ("fcntl", 1, EQUAL, (8, 10, 15)),  # signals to the owner of a file, which can be any process
        ("ioctl", 1, EQUAL, (0x8901, 0x8902, 0x5412, *FILE_FLAGS)),  # the same, and typing into a terminal
        ("socketpair", 1, HAS, (0xE,)),  # all but streams: others send to any socket in a folder, without connecting
    ):
        code += [(EQUAL, 0, 2 * len(values) + 2, special[name]), (LOAD, 0, 0, 16 + 8 * argument)]
        for value in values:
            code += [(operation, 0, 1, value), (RETURN, 0, 0, BAR)]
        code += [(RETURN, 0, 0, ALLOW)]
    for number in barred:
        code += [(EQUAL, 0, 1, number), (RETURN, 0, 0, BAR)]
    return [*code, (RETURN, 0, 0, ALLOW)]


def restrict_calls(own_root: bool) -> None:
    """Bar this process the calls named above, from now on; on a machine with unknown numbers, an OSError."""
    machine = os.uname().machine
    if machine not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise OSError(f"the numbers of system calls on {machine} are not known")
    tables: list[Calls] = [PROCESSES, NETWORK, SHARED_MEMORY, NAMESPACES, KERNEL, *([] if own_root else [MARKS])]
    barred = [number for table in tables for number in numbers(machine, table)]
    install(filter_code(machine, os.getpid(), barred))


def install(code: list[Instruction]) -> None:
    packed = b"".join(
        operation.to_bytes(2, sys.byteorder) + bytes((yes, no)) + value.to_bytes(4, sys.byteorder)
        for operation, yes, no, value in code
    )
    text = ctypes.create_string_buffer(packed, len(packed))
    header = len(code).to_bytes(8, sys.byteorder) + ctypes.addressof(text).to_bytes(8, sys.byteorder)
    call("prctl", 22, 2, header, 0, 0)
