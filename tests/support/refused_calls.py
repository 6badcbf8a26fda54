"""System calls that programs must not get, by the rows of the table in docs/reference/sandbox.md."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from flowevolve.sandbox.inside.syscall_numbers import CONDITIONAL

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_TABLE = {
    # name, number on x86_64, number on aarch64
    "namespaces": """
        unshare 272 97; setns 308 268
    """,
    "mounts": """
        mount 165 40; umount2 166 39; pivot_root 155 41; chroot 161 51; fsopen 430 430; fsconfig 431 431; fsmount 432
        432; fspick 433 433; move_mount 429 429; open_tree 428 428; mount_setattr 442 442
    """,
    "other processes": """
        ptrace 101 117; process_vm_readv 310 270; process_vm_writev 311 271; process_madvise 440 440; process_mrelease
        448 448; kcmp 312 272; pidfd_getfd 438 438; get_robust_list 274 100; userfaultfd 323 282; perf_event_open 298
        241
    """,
    "asynchronous input and output": """
        io_uring_setup 425 425; io_uring_enter 426 426; io_uring_register 427 427; io_setup 206 0; io_submit 209 2;
        io_getevents 208 4; io_pgetevents 333 292; io_cancel 210 3; io_destroy 207 1
    """,
    "splicing": """
        splice 275 76; tee 276 77; vmsplice 278 75
    """,
    "code in the kernel": """
        bpf 321 280; seccomp 317 277; init_module 175 105; finit_module 313 273; delete_module 176 106; kexec_load 246
        104; kexec_file_load 320 294; landlock_create_ruleset 444 444; landlock_add_rule 445 445; landlock_restrict_self
        446 446
    """,
    "keys": """
        add_key 248 217; request_key 249 218; keyctl 250 219
    """,
    "uncounted memory": """
        memfd_create 319 279; memfd_secret 447 447; shmget 29 194; shmat 30 196; shmctl 31 195; semget 64 190; semop 65
        193; semctl 66 191; msgget 68 186; msgsnd 69 189; msgrcv 70 188; msgctl 71 187; mq_open 240 180; mq_unlink 241
        181; mlock 149 228; mlock2 325 284; mlockall 151 230; remap_file_pages 216 234; setxattr 188 5; lsetxattr 189 6;
        fsetxattr 190 7
    """,
    "where memory is": """
        mbind 237 235; set_mempolicy 238 237; set_mempolicy_home_node 450 450; migrate_pages 256 238; move_pages 279
        239; pkey_alloc 330 289; pkey_mprotect 329 288; modify_ldt 154 -
    """,
    "other users": """
        setuid 105 146; setgid 106 144; setreuid 113 145; setregid 114 143; setresuid 117 147; setresgid 119 149;
        setfsuid 122 151; setfsgid 123 152; setgroups 116 159; capset 126 91
    """,
    "handles and watches": """
        name_to_handle_at 303 264; open_by_handle_at 304 265; fanotify_init 300 262; fanotify_mark 301 263; inotify_init
        253 -; inotify_init1 294 26; inotify_add_watch 254 27; inotify_rm_watch 255 28; lookup_dcookie 212 18
    """,
    "priority and cores": """
        setpriority 141 140; sched_setscheduler 144 119; sched_setparam 142 118; sched_setattr 314 274;
        sched_setaffinity 203 122; ioprio_set 251 30; ioprio_get 252 31
    """,
    "the machine": """
        reboot 169 142; settimeofday 164 170; clock_settime 227 112; clock_adjtime 305 266; adjtimex 159 171;
        sethostname 170 161; setdomainname 171 162; swapon 167 224; swapoff 168 225; acct 163 89; quotactl 179 60;
        quotactl_fd 443 443; syslog 103 116; vhangup 153 58; iopl 172 -; ioperm 173 -; personality 135 92; sync 162 81;
        syncfs 306 267; sysfs 139 -; ustat 136 -; uselib 134 -
    """,
}
REFUSED = {
    row: {
        name: {machine: int(number) for machine, number in zip(ARCHITECTURES, numbers, strict=True) if number != "-"}
        for name, *numbers in (entry.split() for entry in text.split(";"))
    }
    for row, text in _TABLE.items()
}
"""Calls that are refused whatever their arguments: row, name, machine, number."""

_CHILD_SIGNAL = 17
_NAMESPACES = {
    "time": 0x80,
    "mount": 0x20000,
    "cgroup": 0x2000000,
    "host name": 0x4000000,
    "System V": 0x8000000,
    "user": 0x10000000,
    "process": 0x20000000,
    "network": 0x40000000,
}
_FAMILIES = (0, *range(2, 47))
"""All but AF_UNIX."""
_EMPTY = (0, 2**16, 3)


@dataclass(frozen=True)
class Attempt:
    """A call that is refused for its arguments."""

    row: str
    words: str
    call: str
    arguments: tuple[int, ...]
    error: int = errno.EPERM

    def number(self, machine: str) -> int:
        return CONDITIONAL[self.call][list(ARCHITECTURES).index(machine)]


ATTEMPTS = [
    *(
        Attempt("namespaces", f"clone into a {name} namespace", "clone", (flag | _CHILD_SIGNAL,))
        for name, flag in _NAMESPACES.items()
        if name != "time"  # which clone can't make
    ),
    Attempt("namespaces", "clone3", "clone3", (0, 88), errno.ENOSYS),
    *(Attempt("sockets", f"a socket of family {number}", "socket", (number, 1)) for number in _FAMILIES),
    *(Attempt("sockets", f"a pair of family {number}", "socketpair", (number, 1)) for number in _FAMILIES),
    Attempt("sockets", "larger buffer for sending", "setsockopt", (0, 1, 7)),
    Attempt("sockets", "larger buffer for receiving", "setsockopt", (0, 1, 8)),
    Attempt("sockets", "larger buffer for sending, by force", "setsockopt", (0, 1, 32)),
    Attempt("sockets", "a filter for packets", "setsockopt", (0, 1, 26)),
    Attempt("sockets", "an option of TCP", "setsockopt", (0, 6, 1)),
    Attempt("splicing", "sendfile", "sendfile", (1, 0, 0, 0), errno.EINVAL),
    Attempt("mappings", "shared and anonymous", "mmap", (*_EMPTY, 0x21, 2**64 - 1)),
    Attempt("mappings", "shared and anonymous, checked", "mmap", (*_EMPTY, 0x23, 2**64 - 1)),
    Attempt("mappings", "huge pages", "mmap", (*_EMPTY, 0x40022, 2**64 - 1)),
    Attempt("mappings", "pages to swap", "madvise", (0, 0, 21)),
    Attempt("mappings", "cold pages", "madvise", (0, 0, 20)),
    Attempt("mappings", "poisoned pages", "madvise", (0, 0, 100)),
    Attempt("options of files", "a larger pipe", "fcntl", (0, 1031, 2**20)),
    Attempt("options of files", "a lease", "fcntl", (0, 1024, 0)),
    Attempt("options of files", "signals about a folder", "fcntl", (0, 1026, 0)),
    Attempt("options of files", "an owner who gets signals", "fcntl", (0, 8, 1)),
    Attempt("options of files", "input for a terminal", "ioctl", (0, 0x5412), errno.ENOTTY),
    Attempt("options of files", "a line discipline", "ioctl", (0, 0x5423), errno.ENOTTY),
    Attempt("options of files", "any other ioctl", "ioctl", (0, 0xAE00), errno.ENOTTY),
    Attempt("options of the process", "not to be looked into", "prctl", (4, 0)),
    Attempt("options of the process", "a filter of its own", "prctl", (22, 2)),
    Attempt("options of the process", "a tracer", "prctl", (0x59616D61, 2**64 - 1)),
    Attempt("options of the process", "orphans of its own", "prctl", (36, 1)),
    Attempt("options of the process", "limits of its supervisor", "prlimit64", (1, 0)),
]

ALLOWED = [
    ("clone", (0x3D0F00,)),  # a thread of the C library
    ("clone", (0x1200011,)),  # fork
    ("mmap", (*_EMPTY, 0x22, 2**64 - 1)),
    ("mmap", (*_EMPTY, 0x01, 3)),
    ("madvise", (0, 0, 4)),
    ("socket", (1, 1)),
    ("socketpair", (1, 1)),
    ("setsockopt", (0, 1, 2)),
    ("fcntl", (0, 1030)),
    ("ioctl", (0, 0x5401)),
    ("prctl", (15, 0)),
    ("prlimit64", (0, 0)),
]
"""Calls that honest programs need, with arguments."""


def program() -> str:
    """A program that tries all of it on this machine. Its result: the error of each call by its words; 0 if it works."""
    machine = os.uname().machine
    tried: list[tuple[str, int, tuple[int, ...]]] = [
        (name, numbers[machine], ()) for row in REFUSED.values() for name, numbers in row.items() if machine in numbers
    ]
    tried += [(attempt.words, attempt.number(machine), attempt.arguments) for attempt in ATTEMPTS]
    return _PROGRAM.format(tried=tried)


_PROGRAM = """\
import ctypes, os
call = ctypes.CDLL(None, use_errno=True).syscall
call.restype = ctypes.c_long
result = {{}}
for words, number, arguments in {tried}:
    ctypes.set_errno(0)
    returned = call(*map(ctypes.c_ulong, (number, *arguments, *[0] * (6 - len(arguments)))))
    if returned == 0 and number in (56, 220) and os.getpid() != 2:
        os._exit(0)
    result[words] = ctypes.get_errno() if returned == -1 else 0
"""
