"""Which system calls a program may make: a seccomp filter in the form of BPF instructions, as the kernel expects.

Every call that is not listed is refused. Namespaces already hide what most refused calls would reach. The filter also
protects sandboxes without namespaces, keeps programs away from parts of the kernel that they don't need, and refuses
kinds of memory that no limit counts.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable
from functools import cache

from flowevolve.sandbox.inside.syscall_numbers import ALLOWED, CONDITIONAL, NEWEST

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Machines, with their column in the tables of numbers and the kernel's constant for their architecture."""
_X32 = 0x40000000
"""The bit that marks system calls of the x32 ABI on x86_64."""

_AF_UNIX = 1
_NEW_NAMESPACE_FLAGS = 0x7E020000
"""The CLONE_NEW* flags of linux/sched.h that ``clone`` accepts."""
_MAP_SHARED, _MAP_ANONYMOUS, _MAP_HUGETLB = 0x01, 0x20, 0x40000
_COLD, _PAGEOUT, _HWPOISON, _SOFT_OFFLINE = 20, 21, 100, 101
_SOL_SOCKET = 1
_SOCKET_OPTIONS = (2, 9, 13, 15, 16, 20, 21)
"""SO_REUSEADDR, SO_KEEPALIVE, SO_LINGER, SO_REUSEPORT, SO_PASSCRED, SO_RCVTIMEO, SO_SNDTIMEO."""
_FCNTL = (*range(8), *range(36, 39), 1027, 1030, 1032)
"""Duplicating, flags, locks and F_GETPIPE_SZ, but not larger pipes, leases, or signals about files."""
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: calls made on any file, if only to see what it is."""
_PRCTL = (1, 2, 3, 15, 16, 21, 23, 29, 30, 38, 39, 40, 41, 42, 0x53564D41)
"""PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_CAPBSET_READ,
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS, PR_SET_THP_DISABLE,
PR_GET_THP_DISABLE, PR_SET_VMA."""

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _EQUAL, _GREATER, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_KILL, _ALLOW, _ERROR = 0x80000000, 0x7FFF0000, 0x00050000
_REFUSED, _UNKNOWN = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
_NUMBER, _ARCHITECTURE = 0, 4
"""Offsets in struct seccomp_data."""

MACHINES = tuple(_MACHINES)


def clone() -> int:
    """The number of the system call ``clone`` on this machine."""
    return CONDITIONAL["clone"][_MACHINES[os.uname().machine][0]]


def filter_here() -> bytes:
    """The filter for this machine."""
    return filter_for(os.uname().machine)


@cache
def filter_for(machine: str) -> bytes:
    """The filter for a machine: calls that are not allowed fail with EPERM, unknown ones with ENOSYS.

    A call of another architecture (32 bits) kills the program.
    """
    column, architecture = _MACHINES[machine]
    code = [_step(_LOAD, _ARCHITECTURE), *_unless(_EQUAL, architecture, _KILL), _step(_LOAD, _NUMBER)]
    code += _when(_GREATER, _X32 - 1, _REFUSED)
    code += _when(_GREATER, NEWEST, _UNKNOWN)
    for name, answer in _conditions().items():
        code += [_step(_EQUAL, CONDITIONAL[name][column], 0, len(answer)), *answer]
    numbers = [numbers[column] for group in ALLOWED.values() for numbers in group.values()]
    for first, last in _ranges(number for number in numbers if number is not None):
        code += [*_unless(_AT_LEAST, first, _REFUSED), *_unless(_GREATER, last, _ALLOW)]
    return b"".join([*code, _step(_RETURN, _REFUSED)])


def _conditions() -> dict[str, list[bytes]]:
    """The calls whose permission depends on their arguments, each with the instructions that decide."""
    return {
        "clone": [_argument(0), *_when(_ANY_BIT, _NEW_NAMESPACE_FLAGS, _REFUSED), _step(_RETURN, _ALLOW)],
        # A filter can't read its flags, which are in memory; C libraries fall back to clone.
        "clone3": [_step(_RETURN, _UNKNOWN)],
        "fcntl": _only(1, _FCNTL),
        "ioctl": _only(1, _IOCTL, _ERROR | errno.ENOTTY),
        # Memory that is written to swap, or ruined, would no longer be counted.
        "madvise": [
            _argument(2),
            *(
                part
                for advice in (_COLD, _PAGEOUT, _HWPOISON, _SOFT_OFFLINE)
                for part in _when(_EQUAL, advice, _REFUSED)
            ),
            _step(_RETURN, _ALLOW),
        ],
        # Pages of shared anonymous mappings persist when no process has them in its page tables, the only place where
        # they would be counted; huge pages from the machine's pool are never counted.
        "mmap": [
            _argument(3),
            *_when(_ANY_BIT, _MAP_HUGETLB, _REFUSED),
            *_unless(_ANY_BIT, _MAP_ANONYMOUS, _ALLOW),
            *_when(_ANY_BIT, _MAP_SHARED, _REFUSED),
            _step(_RETURN, _ALLOW),
        ],
        "prctl": _only(0, _PRCTL),
        # Only its own process, because the kernel would let it set the limits of its supervisor, which has the same
        # user.
        "prlimit64": _only(0, [0]),
        # Programs that copy files then fall back to reading and writing.
        "sendfile": [_step(_RETURN, _ERROR | errno.EINVAL)],
        "setsockopt": [_argument(1), *_unless(_EQUAL, _SOL_SOCKET, _REFUSED), *_only(2, _SOCKET_OPTIONS)],
        # Sockets between the program's own processes only. The network namespace does not bound every family
        # (AF_VSOCK), and for a pair of such a family the kernel would load the family's module before it refuses.
        "socket": _only(0, [_AF_UNIX]),
        "socketpair": _only(0, [_AF_UNIX]),
    }


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """The first and last numbers of all runs of consecutive numbers."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def _argument(place: int) -> bytes:
    """Load the lower half of an argument, which comes first on both machines. The kernel looks at nothing else here."""
    return _step(_LOAD, 16 + 8 * place)


def _only(place: int, values: Iterable[int], otherwise: int = _REFUSED) -> list[bytes]:
    """Allow a call if an argument has one of these values."""
    tests = [part for value in values for part in _when(_EQUAL, value, _ALLOW)]
    return [_argument(place), *tests, _step(_RETURN, otherwise)]


def _step(operation: int, operand: int, when: int = 0, otherwise: int = 0) -> bytes:
    """One BPF instruction; ``when`` and ``otherwise`` are how many instructions a jump skips."""
    return struct.pack("=HBBI", operation, when, otherwise, operand)


def _when(test: int, operand: int, answer: int) -> list[bytes]:
    return [_step(test, operand, 0, 1), _step(_RETURN, answer)]


def _unless(test: int, operand: int, answer: int) -> list[bytes]:
    return [_step(test, operand, 1, 0), _step(_RETURN, answer)]
