"""The numbers of the system calls that programs may make, on both kinds of machine."""

from __future__ import annotations

_TABLE = {
    # name, number on x86_64, number on aarch64; "-" where the machine has no such call
    "files": """
        read 0 63; write 1 64; readv 19 65; writev 20 66; pread64 17 67; pwrite64 18 68; preadv 295 69; pwritev 296 70;
        preadv2 327 286; pwritev2 328 287; lseek 8 62; open 2 -; openat 257 56; openat2 437 437; creat 85 -; close 3 57;
        close_range 436 436; dup 32 23; dup2 33 -; dup3 292 24; pipe 22 -; pipe2 293 59; flock 73 32; fsync 74 82;
        fdatasync 75 83; sync_file_range 277 84; fallocate 285 47; truncate 76 45; ftruncate 77 46; fadvise64 221 223;
        readahead 187 213; copy_file_range 326 285
    """,
    "folders and names": """
        stat 4 -; lstat 6 -; fstat 5 80; newfstatat 262 79; statx 332 291; statfs 137 43; fstatfs 138 44; access 21 -;
        faccessat 269 48; faccessat2 439 439; getdents 78 -; getdents64 217 61; getcwd 79 17; chdir 80 49; fchdir 81 50;
        mkdir 83 -; mkdirat 258 34; rmdir 84 -; rename 82 -; renameat 264 38; renameat2 316 276; link 86 -; linkat 265
        37; symlink 88 -; symlinkat 266 36; unlink 87 -; unlinkat 263 35; readlink 89 -; readlinkat 267 78; mknod 133 -;
        mknodat 259 33; umask 95 166; chmod 90 -; fchmod 91 52; fchmodat 268 53; fchmodat2 452 452; chown 92 -; fchown
        93 55; lchown 94 -; fchownat 260 54; utime 132 -; utimes 235 -; utimensat 280 88; futimesat 261 -; getxattr 191
        8; lgetxattr 192 9; fgetxattr 193 10; listxattr 194 11; llistxattr 195 12; flistxattr 196 13
    """,
    "memory": """
        munmap 11 215; mprotect 10 226; mremap 25 216; brk 12 214; msync 26 227; mincore 27 232; membarrier 324 283;
        get_mempolicy 239 236; map_shadow_stack 453 453
    """,
    "processes and threads": """
        fork 57 -; vfork 58 -; execve 59 221; execveat 322 281; exit 60 93; exit_group 231 94; wait4 61 260; waitid 247
        95; getpid 39 172; getppid 110 173; gettid 186 178; getpgid 121 155; getpgrp 111 -; setpgid 109 154; getsid 124
        156; setsid 112 157; set_tid_address 218 96; set_robust_list 273 99; rseq 334 293; futex 202 98; futex_waitv 449
        449; arch_prctl 158 -; sched_yield 24 124; sched_getaffinity 204 123; sched_getparam 143 121; sched_getscheduler
        145 120; sched_getattr 315 275; sched_get_priority_max 146 125; sched_get_priority_min 147 126;
        sched_rr_get_interval 148 127; getpriority 140 141; getrlimit 97 163; setrlimit 160 164; getrusage 98 165; kill
        62 129; tkill 200 130; tgkill 234 131; pidfd_open 434 434; pidfd_send_signal 424 424
    """,
    "who and where": """
        getuid 102 174; geteuid 107 175; getgid 104 176; getegid 108 177; getresuid 118 148; getresgid 120 150;
        getgroups 115 158; capget 125 90; uname 63 160; sysinfo 99 179; times 100 153; getcpu 309 168; getrandom 318 278
    """,
    "signals": """
        rt_sigaction 13 134; rt_sigprocmask 14 135; rt_sigreturn 15 139; rt_sigpending 127 136; rt_sigtimedwait 128 137;
        rt_sigsuspend 130 133; rt_sigqueueinfo 129 138; rt_tgsigqueueinfo 297 240; sigaltstack 131 132; pause 34 -;
        restart_syscall 219 128; signalfd 282 -; signalfd4 289 74
    """,
    "time": """
        time 201 -; gettimeofday 96 169; clock_gettime 228 113; clock_getres 229 114; clock_nanosleep 230 115; nanosleep
        35 101; alarm 37 -; getitimer 36 102; setitimer 38 103; timer_create 222 107; timer_settime 223 110;
        timer_gettime 224 108; timer_getoverrun 225 109; timer_delete 226 111; timerfd_create 283 85; timerfd_settime
        286 86; timerfd_gettime 287 87
    """,
    "waiting": """
        select 23 -; pselect6 270 72; poll 7 -; ppoll 271 73; epoll_create 213 -; epoll_create1 291 20; epoll_ctl 233
        21; epoll_wait 232 -; epoll_pwait 281 22; epoll_pwait2 441 441; eventfd 284 -; eventfd2 290 19
    """,
    "sockets": """
        bind 49 200; connect 42 203; listen 50 201; accept 43 202; accept4 288 242; getsockname 51 204; getpeername 52
        205; sendto 44 206; recvfrom 45 207; sendmsg 46 211; recvmsg 47 212; sendmmsg 307 269; recvmmsg 299 243;
        shutdown 48 210; getsockopt 55 209
    """,
}

ALLOWED: dict[str, dict[str, tuple[int | None, int | None]]] = {
    group: {
        name: (None if first == "-" else int(first), None if second == "-" else int(second))
        for name, first, second in (entry.split() for entry in text.split(";"))
    }
    for group, text in _TABLE.items()
}
"""Calls that are allowed with any arguments, by group and name, with their numbers on x86_64 and on aarch64."""

CONDITIONAL = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "madvise": (28, 233),
    "mmap": (9, 222),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "sendfile": (40, 71),
    "setsockopt": (54, 208),
    "socket": (41, 198),
    "socketpair": (53, 199),
}
"""Calls whose answer depends on their arguments, or differs from that of all unlisted calls."""

NEWEST = 462
"""The last system call known when this was written; later ones fail for programs as if they did not exist."""
