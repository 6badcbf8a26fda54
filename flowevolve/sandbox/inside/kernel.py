"""System calls for which Python has no function: namespaces, mounts, capabilities."""

from __future__ import annotations

import ctypes
import os
import signal

from flowevolve.sandbox.inside import files, syscall_filter

_LIBC = ctypes.CDLL(None, use_errno=True)
_SYSCALL = ctypes.PyDLL(None, use_errno=True)["syscall"]
"""The C function ``syscall``. `PyDLL` keeps the interpreter's lock during the call."""
_SYSCALL.argtypes = 6 * (ctypes.c_ulong,)
_SYSCALL.restype = ctypes.c_long
_PRCTL = _LIBC["prctl"]
_PRCTL.argtypes = (ctypes.c_int, *4 * (ctypes.c_ulong,))

NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000
"""Namespaces of mounts, control groups, host name, System V objects, users and processes: CLONE_NEW* in linux/sched.h.

There is no network namespace among them: all programs share that of bubblewrap, which leads nowhere and gives them no
rights. Creating and removing one for each program would be among the most expensive steps.
"""
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 4, 24, 36, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _check(returned: int, what: str) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(option: int, argument: int) -> int:
    return int(_PRCTL(option, argument, 0, 0, 0))


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    _check(_LIBC.mount(kind.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()), target)


def fork_into_namespaces() -> int:
    """Like `os.fork`, but the child is process 1 of namespaces of its own, in which it has all capabilities.

    Unsharing the namespaces first would need an intermediate process, which costs as much as the program's own.

    Raises:
        OSError: in the parent, if the kernel refuses; in the child, if it can't map its user and group.
    """
    user, group = os.getuid(), os.getgid()
    ctypes.pythonapi.PyOS_BeforeFork()
    child = int(_SYSCALL(syscall_filter.clone(), NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0))
    if child != 0:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        _check(min(child, 0), "clone")
        return child
    ctypes.pythonapi.PyOS_AfterFork_Child()
    allow_looking_in(True)  # otherwise our uid_map belongs to root
    files.write("/proc/self/setgroups", b"deny")
    files.write("/proc/self/uid_map", f"{user} {user} 1".encode())
    files.write("/proc/self/gid_map", f"{group} {group} 1".encode())
    allow_looking_in(False)
    return 0


def become(user: int) -> None:
    """Become another user and group for good, because the kernel does not limit the processes of root."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    allow_looking_in(True)  # changing the user turned this off, and writing our own uid_map needs it


def allow_looking_in(allowed: bool) -> None:
    """Set whether processes of the same user may trace this one and read its memory."""
    _prctl(_PR_SET_DUMPABLE, int(allowed))


def drop_capabilities() -> None:
    """Give up all capabilities for good; executing other programs gives no new ones either."""
    for capability in range(_LAST_CAPABILITY + 1):
        if _prctl(_PR_CAPBSET_DROP, capability) != 0:
            break  # the kernel has no further capabilities
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")


def adopt_orphans() -> None:
    """Make descendants whose parent ends children of this process."""
    _check(_prctl(_PR_SET_CHILD_SUBREAPER, 1), "subreaper")


def install_filter(program: bytes) -> None:
    """Install a seccomp filter for this process and all it starts. ``program`` consists of BPF instructions of 8 bytes
    each.
    """
    described = _Filter(len(program) // 8, program)
    _check(_PRCTL(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(described), 0, 0), "seccomp")
