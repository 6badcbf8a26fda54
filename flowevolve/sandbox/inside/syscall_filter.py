"""Which system calls a program may make: a seccomp filter, written as the BPF instructions that the kernel takes.

Namespaces already hide what these calls would reach. The filter also protects sandboxes without namespaces, keeps
programs from parts of the kernel that they don't need, and refuses kinds of memory that no limit counts.
"""

from __future__ import annotations

import errno
import os
import struct
from functools import cache

_DENIED: dict[str, tuple[int | None, int | None]] = {
    # name: number on x86_64, number on aarch64
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mbind": (237, 235),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mlock": (149, 228),
    "mlock2": (325, 284),
    "mlockall": (151, 230),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "set_mempolicy": (238, 237),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}
_MACHINES = {
    # machine: column above, audit architecture, clone, clone3, (socket, socketpair), prlimit64
    "x86_64": (0, 0xC000003E, 56, 435, (41, 53), 302),
    "aarch64": (1, 0xC00000B7, 220, 435, (198, 199), 261),
}
_NEWEST = 462
"""The last system call known when this was written; later ones fail for programs as if they did not exist."""
_X32 = 0x40000000
"""The bit that marks system calls of the x32 ABI on x86_64."""
_AF_UNIX = 1
_NEW_NAMESPACE_FLAGS = 0x7E020000
"""The CLONE_NEW* flags of linux/sched.h that ``clone`` accepts."""

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_KILL, _ALLOW, _ERROR = 0x80000000, 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data; the lower half of an argument comes first on both machines."""

MACHINES = tuple(_MACHINES)


def clone() -> int:
    """The number of the system call ``clone`` on this machine."""
    return _MACHINES[os.uname().machine][2]


@cache
def denying_filter() -> bytes:
    """The filter for this machine: denied calls fail with EPERM, unknown ones with ENOSYS."""
    column, architecture, clone, clone3, sockets, prlimit = _MACHINES[os.uname().machine]
    denied, unknown = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
    code = [_step(_LOAD, _ARCHITECTURE), *_unless(_EQUAL, architecture, _KILL), _step(_LOAD, _NUMBER)]
    code += _when(_GREATER, _X32 - 1, denied)
    code += _when(_GREATER, _NEWEST, unknown)
    for number in (numbers[column] for numbers in _DENIED.values()):
        if number is not None:
            code += _when(_EQUAL, number, denied)
    code += _when(_EQUAL, clone3, unknown)  # a filter can't read its flags; C libraries fall back to clone
    # Sockets between the program's own processes only. The network namespace does not bound every family (AF_VSOCK).
    # The kernel would refuse a socket pair of such a family, too, but only after it has loaded the family's module.
    for number in sockets:
        code += [_step(_LOAD, _NUMBER), _step(_EQUAL, number, 0, 3), _step(_LOAD, _FIRST_ARGUMENT)]
        code += _unless(_EQUAL, _AF_UNIX, denied)
    # Limits of its own process only, as the kernel would let it set those of its supervisor, which has the same user.
    code += [_step(_LOAD, _NUMBER), _step(_EQUAL, prlimit, 0, 3), _step(_LOAD, _FIRST_ARGUMENT)]
    code += _unless(_EQUAL, 0, denied)
    code += [_step(_LOAD, _NUMBER), _step(_EQUAL, clone, 0, 3), _step(_LOAD, _FIRST_ARGUMENT)]
    code += _when(_ANY_BIT, _NEW_NAMESPACE_FLAGS, denied)
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _step(operation: int, operand: int, when: int = 0, otherwise: int = 0) -> bytes:
    """One BPF instruction; ``when`` and ``otherwise`` are how many instructions a jump skips."""
    return struct.pack("=HBBI", operation, when, otherwise, operand)


def _when(test: int, operand: int, answer: int) -> list[bytes]:
    return [_step(test, operand, 0, 1), _step(_RETURN, answer)]


def _unless(test: int, operand: int, answer: int) -> list[bytes]:
    return [_step(test, operand, 1, 0), _step(_RETURN, answer)]
