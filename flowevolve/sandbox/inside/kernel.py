"""System calls that Python has no function for: namespaces, mounts, capabilities."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)

NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""Mounts, control groups, host name, System V objects, users, processes, network: CLONE_NEW* in linux/sched.h."""
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 4, 24, 36, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63


def _check(returned: int, what: str) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(option: int, argument: int) -> int:
    return int(_LIBC.prctl(option, ctypes.c_ulong(argument), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    _check(_LIBC.mount(kind.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()), target)


def enter_namespaces() -> None:
    """Own namespaces of every kind; of processes only for children. In its own the caller has all capabilities."""
    user, group = os.getuid(), os.getgid()
    _check(_LIBC.unshare(NEW_NAMESPACES), "unshare")
    Path("/proc/self/setgroups").write_text("deny", encoding="utf-8")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="utf-8")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="utf-8")


def become(user: int) -> None:
    """Another user and group, for good. The kernel exempts its root user from the limit on processes."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    allow_looking_in(True)  # changing the user forbade it, and writing our own uid_map needs it


def allow_looking_in(allowed: bool) -> None:
    """Whether processes of the same user may trace this one and read its memory."""
    _prctl(_PR_SET_DUMPABLE, int(allowed))


def drop_capabilities() -> None:
    """All of them, for good, and no new ones by running programs."""
    for capability in range(_LAST_CAPABILITY + 1):
        _prctl(_PR_CAPBSET_DROP, capability)  # fails for those the kernel does not know
    _LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")


def adopt_orphans() -> None:
    """Descendants that lose their parent become children of this process."""
    _check(_prctl(_PR_SET_CHILD_SUBREAPER, 1), "subreaper")


def install_filter(program: bytes) -> None:
    """A seccomp filter, for this process and all it starts. ``program``: BPF instructions of 8 bytes."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    described = Program(len(program) // 8, program)
    _check(_LIBC.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(described), 0, 0), "seccomp")
