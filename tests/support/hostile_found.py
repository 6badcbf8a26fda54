"""More programs that try: what attacks on this sandbox found, and what stands next to it. As `tests.support.hostile`."""

from __future__ import annotations

from tests.support.hostile import CAUGHT, ENDED, SPIN, Hostile, refused

_CLONE = "(56 if os.uname().machine == 'x86_64' else 220)"
_ENDS_MAIN_THREAD = (
    "import ctypes, os, threading, time\n"
    "def ended():\n    while open(f'/proc/{os.getpid()}/stat').read().split()[2] != 'Z': pass\n"
    "def end_main_thread_for(function):\n    threading.Thread(target=function).start()\n"
    "    ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)\n"
)
_UNLESS = "\nif {what}: raise PermissionError(1, 'refused')\nprint('GOT IN')"


def told(name: str, source: str, refused_if: str) -> Hostile:
    """A program that must find what it tries refused, by an expression."""
    return Hostile(name, source + _UNLESS.format(what=refused_if), ("denied",))


MEMORY = [
    Hostile("shared and anonymous", "import mmap\nmmap.mmap(-1, 2 ** 20)", ("denied",)),
    Hostile("a mapping of /dev/zero", "import mmap\nmmap.mmap(open('/dev/zero', 'r+b').fileno(), 2 ** 20)", ("error",)),
    Hostile(
        "looks away from what it maps",
        "import mmap\nfor i in range(9):\n    f = open(str(i), 'w+b'); f.truncate(2 ** 23); m = mmap.mmap(f.fileno(), 0)\n"
        "    for _ in range(8): m.write(b'1' * 2 ** 20); m.madvise(mmap.MADV_DONTNEED)",
        ("killed",),
    ),
    Hostile(
        "sockets in many processes",
        "import os, socket, time\nfor _ in range(4): os.fork()\nx = []\nwhile True:\n"
        "    try: x.append(socket.socketpair())\n    except OSError: time.sleep(99)",
        ("memory",),
    ),
    Hostile(
        "sockets inside of sockets",
        "import socket, array\na, b = socket.socketpair()\nwhile True:\n    x = socket.socketpair()\n"
        "    a.sendmsg([b'1'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [s.fileno() for s in x]))])\n"
        "    for s in x: s.close()",
        ENDED,
        5.0,
    ),
    Hostile(
        "in processes whose main threads have ended",
        _ENDS_MAIN_THREAD + "def hold():\n    ended()\n    x = b'1' * (60 * 2 ** 20)\n    time.sleep(100)\n"
        "for _ in range(9):\n    if os.fork() == 0: break\nend_main_thread_for(hold)",
        ("memory",),
    ),
    Hostile(
        "page tables of a process whose main thread has ended",
        _ENDS_MAIN_THREAD + "import mmap\ndef hold():\n    ended()\n"
        "    m = mmap.mmap(-1, 2 ** 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)\n"
        "    for at in range(0, 2 ** 38, 2 ** 21): m[at]\nend_main_thread_for(hold)",
        ("memory",),
        5.0,
        ("python3",),
    ),
    Hostile(
        "a larger buffer", "import socket\nsocket.socketpair()[0].setsockopt(1, socket.SO_SNDBUF, 2 ** 24)", ("denied",)
    ),
    Hostile("a larger pipe", "import fcntl, os\nfcntl.fcntl(os.pipe()[1], 1031, 2 ** 20)", ("denied",)),
    Hostile("a lease", "import fcntl\nf = open('x', 'w'); fcntl.fcntl(f, fcntl.F_SETLEASE, 1)", ("denied",)),
    Hostile(
        "pages to swap",
        "import mmap\nm = mmap.mmap(-1, 2 ** 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nm.madvise(21)",
        ("denied",),
    ),
    Hostile(
        "huge pages",
        "import mmap\nmmap.mmap(-1, 2 ** 21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)",
        ("denied",),
    ),
    Hostile("attributes of files", "import os\nopen('x', 'w')\nos.setxattr('x', 'user.a', b'1' * 4096)", ("denied",)),
    Hostile(
        "empty files in shared memory",
        "for i in range(10 ** 6): open(f'/dev/shm/hostile-{i}', 'w').close()",
        ("error",),
    ),
    Hostile("wakers without end", "import select\nx = []\nwhile True: x.append(select.epoll())", ("error",)),
    Hostile(
        "an environment without end",
        "import os\nos.execve('/bin/true', ['true'], {str(i): 'x' * 10 ** 5 for i in range(1000)})",
        ("error",),
    ),
    Hostile(
        "zip bomb",
        "import zlib\nx = zlib.compress(bytes(2 ** 23))\ny = [zlib.decompress(x, bufsize=2 ** 30) for _ in range(100)]",
        ("memory",),
    ),
    Hostile(
        "entities of XML",
        "import xml.etree.ElementTree as e\nt = ''.join(f'<!ENTITY a{i} \"{f\"&a{i - 1};\" * 10}\">' for i in range(1, 12))\n"
        "e.fromstring(f'<!DOCTYPE a [<!ENTITY a0 \"ha\">{t}]><a>&a11;</a>')",
        ENDED,
        2.0,
    ),
    Hostile("recursion", "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()", ENDED, SPIN),
    Hostile(
        "stacks of threads",
        "import threading, time\nthreading.stack_size(2 ** 26)\n"
        "while True: threading.Thread(target=time.sleep, args=(99,)).start()",
        ENDED,
        2.0,
    ),
    Hostile("a block in another interpreter", "x = bytearray(20 * 2 ** 30)", ("error", "memory"), 5.0, ("python3",)),
    Hostile(
        "files of another language",
        "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/urandom > /tmp/hostile-$i || exit 1; done",
        ("error",),
        20.0,
        ("sh",),
    ),
]

PROCESSES = [
    Hostile(
        "a child for its supervisor",
        f"import ctypes, os\nif ctypes.CDLL(None).syscall({_CLONE}, 0x8011, 0, 0, 0, 0) == 0:\n    while True: pass\nresult = 1",
        ("ok",),
    ),
    Hostile(
        "starts itself anew",
        "import os, sys\nos.execv('/bin/sh', ['sh', '-c', 'while :; do :; done'])",
        ("timeout",),
        SPIN,
    ),
    Hostile(
        "never exits",
        "import atexit, os\natexit.register(lambda: None)\nos.fork()\nwhile True: pass",
        ("timeout",),
        SPIN,
    ),
    Hostile(
        "a thread that stays",
        "import threading\ndef f():\n    while True: pass\nthreading.Thread(target=f, daemon=False).start()\nresult = 1",
        ("ok",),
    ),
    Hostile(
        "orphans of orphans",
        "import os\nfor _ in range(8):\n    if os.fork(): break\nwhile os.getppid() != 2 and os.getpid() != 2: pass\nresult = 1",
        CAUGHT,
        SPIN,
    ),
    Hostile(
        "a shell that leaves one behind",
        "nohup sh -c 'while :; do :; done' >/dev/null 2>&1 & exit 0",
        ("ok",),
        5.0,
        ("sh",),
    ),
    Hostile(
        "stops its supervisor by limits",
        "import resource\nresource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
        ("denied",),
    ),
    Hostile(
        "ends its supervisor by its output",
        "import os\nos.set_blocking(1, False)\nfor _ in range(10 ** 4):\n    try: os.write(1, b'x' * 65536)\n    except OSError: pass",
        ("ok",),
    ),
    Hostile("every signal for its supervisor", "import os\nfor n in range(1, 65): os.kill(1, n)\nresult = 1", ("ok",)),
]

OUTSIDE = [
    Hostile("addresses of the kernel", "if any(int(l.split()[0], 16) for l in open('/proc/kallsyms')): print('GOT IN')", CAUGHT),
    Hostile("memory of the machine", "open('/proc/kcore', 'rb').read(1)", ("error", "denied")),
    Hostile("settings of the kernel", "open('/sys/kernel/mm/transparent_hugepage/enabled', 'w')", ("error", "denied")),
    Hostile("control groups", "open('/sys/fs/cgroup/cgroup.procs', 'w').write('0')", ("error", "denied")),
    Hostile("its own interpreter", "import os\nopen(os.path.realpath('/proc/self/exe'), 'r+b')", ("error", "denied")),
    Hostile("somebody else in its namespace", "open('/proc/self/uid_map', 'wb', 0).write(b'0 0 1')", ("error", "denied")),
    Hostile("not to be the first who dies", "open('/proc/self/oom_score_adj', 'wb', 0).write(b'-1000')", ("error", "denied")),
    Hostile("the namespace of its supervisor", "import os\nos.open('/proc/1/ns/mnt', 0)", ("error", "denied")),
    Hostile("the folder of its supervisor", "import os\nos.listdir('/proc/1/cwd')", ("error", "denied")),
    Hostile("maps of its supervisor", "print(open('/proc/1/maps').read())", ("error", "denied")),
    Hostile("a program in shared memory", "import os, shutil\nshutil.copy('/bin/true', '/dev/shm/hostile'); os.execv('/dev/shm/hostile', ['x'])", ("denied",)),
    told("a new namespace by a command", "import os\nx = os.system('unshare -r true 2>/dev/null')", "x"),
    told("mounts by a command", "import os\nx = os.system('mount -t tmpfs x /tmp 2>/dev/null')", "x"),
    Hostile("devices", "import os\nresult = sorted(set(os.listdir('/dev')) - {'fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom'})\nif result: print('GOT IN', result)", ("ok",)),
    Hostile("hosts of the network", "print(open('/etc/hosts').read(), open('/etc/resolv.conf').read())", ("error", "denied")),
]  # fmt: skip

NETWORK = [
    Hostile("ping", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)", ("denied",)),
    Hostile("a server", "import http.server\nhttp.server.HTTPServer(('127.0.0.1', 0), None)", ("denied",)),
    Hostile("a page", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:@PORT@', timeout=2)", ("error", "denied")),
    Hostile("a manager by TCP", "from multiprocessing.managers import BaseManager\nBaseManager(('127.0.0.1', @PORT@), b'x').connect()", ("denied",)),
    Hostile("a pair across the machine", "import socket\nsocket.socketpair(40)", ("denied",)),
    Hostile("Bluetooth", "import socket\nsocket.socket(31, 3, 0)", ("denied",)),
    Hostile("a bus of cars", "import socket\nsocket.socket(29, 3, 1)", ("denied",)),
    Hostile("a packet filter", "import socket\nsocket.socketpair()[0].setsockopt(1, 26, bytes(16))", ("denied",)),
    Hostile("the docker daemon", "import socket\nsocket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')", ("error", "denied")),
]  # fmt: skip

KERNEL = [
    refused("faults of its own", "libc.syscall(323 if os.uname().machine == 'x86_64' else 282, 0)"),
    refused("another's descriptor", "libc.syscall(438, 3, 0, 0)"),
    refused("asynchronous reading", "libc.syscall(206 if os.uname().machine == 'x86_64' else 0, 8, ctypes.byref(ctypes.c_long()))"),
    refused("splice", "libc.syscall(275 if os.uname().machine == 'x86_64' else 76, 0, None, 1, None, 1, 0)"),
    refused("watches files", "libc.inotify_init1(0)"),
    refused("a filter of its own", "libc.prctl(22, 2, 0, 0, 0)"),
    refused("hides from the watch", "libc.prctl(4, 0, 0, 0, 0)"),
    refused("its supervisor's namespace", "libc.setns(0, 0)"),
    refused("another personality", "libc.personality(0x40000)"),
    refused("all capabilities", "libc.capset(ctypes.create_string_buffer(8), ctypes.create_string_buffer(24))"),
    refused("a call by the numbers of x32", "libc.syscall(0x40000000 | 39)"),
    Hostile("types for a terminal", "import fcntl\nfcntl.ioctl(0, 0x5412, b'x')", ("error", "denied")),
    Hostile(
        "a call of 32 bits",
        "import ctypes, mmap, os\nif os.uname().machine != 'x86_64': os.kill(os.getpid(), 31)\n"
        "m = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)\n"
        r"m.write(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3')" + "\n"
        "print('GOT IN', ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())",
        ("denied", "killed"),
    ),
]  # fmt: skip

FORGED = [
    Hostile("a child answers", "import os\nif os.fork() == 0: os.write(3, b'99'); os._exit(0)\nos.wait()\nraise ValueError", ("error",)),
    Hostile("another file in the answer's place", "import os\nos.close(3); f = open('x', 'w'); result = 1", CAUGHT),
    Hostile("pretends to be denied", "import os\nos._exit(202)", ("denied",)),
    Hostile("ends as if by the filter", "import os\nos.kill(os.getpid(), 31)", ("denied",)),
    Hostile("half a character in a name", "import os\nos.write(3, b'{\"\\\\ud800\": 1}')\nos._exit(0)", ("error",)),
    Hostile("a dictionary that lies", "class D(dict):\n    def items(self): return iter([('score', float('inf'))])\nresult = D(a=1)", ("error", "ok")),
    Hostile("words of the engine", "import sys\nsys.stderr.write('the sandbox itself ended\\n' * 1000)\nresult = 1", ("ok",)),
    Hostile("a report for a result", "import os\nos.write(3, b'{\"code\": 0, \"stopped\": null, \"seconds\": 0, \"peak\": 0}')\nos._exit(7)", ("error",)),
]  # fmt: skip

FOUND = [*MEMORY, *PROCESSES, *OUTSIDE, *NETWORK, *KERNEL, *FORGED]
