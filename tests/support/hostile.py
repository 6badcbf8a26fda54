"""Programs that try to get out, to stay, to take everything or to forge what they are worth.

In a source, ``@SECRET@`` is a file they must not read, ``@TARGET@`` one they must not write, ``@PID@`` the engine's process,
``@PORT@`` a TCP and UDP port that somebody listens on, ``@SOCKET@`` and ``@ABSTRACT@`` Unix sockets of the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve.sandbox.outcome import Status

ENDED: tuple[Status, ...] = ("error", "denied", "killed", "memory", "timeout")
CAUGHT: tuple[Status, ...] = ("ok", *ENDED)
"""Where the program's own report is beside the point: that it did no harm is what counts."""


@dataclass(frozen=True)
class Hostile:
    name: str
    source: str
    statuses: tuple[Status, ...]
    timeout: float = 20.0
    command: tuple[str, ...] | None = None


SPIN = 0.6
SYSCALL = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
REFUSED = "\nif {call} != -1: open('/tmp/got', 'w'); print('GOT IN')\nelse: raise PermissionError(1, 'refused')\n"


def refused(name: str, call: str) -> Hostile:
    """A system call that must fail."""
    return Hostile(name, SYSCALL + REFUSED.format(call=call), ("denied",))


TIME = [
    Hostile("loop", "while True: pass", ("timeout",), SPIN),
    Hostile("loop in C", "sum(iter(int, 1))", ("timeout",), SPIN),
    Hostile("loop in a regular expression", "import re\nre.match('(a+)+$', 'a' * 64 + 'b')", ("timeout",), SPIN),
    Hostile("power of powers", "9 ** 9 ** 9 ** 9", ("timeout", "memory"), SPIN),
    Hostile("compile bomb", "compile('-' * 200000 + '1', 'x', 'eval')", ENDED, SPIN),
    Hostile("constant bomb", "x = eval('(' * 90 + '1' + ')' * 90 + '*9**9' * 40000)", ENDED, SPIN),
    Hostile("sleep", "import time\ntime.sleep(1000)", ("timeout",), SPIN),
    Hostile(
        "ignores every signal",
        "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
        ("timeout",),
        SPIN,
    ),
    Hostile("stops itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", ("timeout",), SPIN),
    Hostile(
        "catches everything",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        ("timeout",),
        SPIN,
    ),
    Hostile(
        "endless destructor",
        "class A:\n    def __del__(self):\n        while True: pass\nx = A(); del x",
        ("timeout",),
        SPIN,
    ),
    Hostile("endless import", "import builtins\nwhile True: exec('import json')", ("timeout",), SPIN),
    Hostile("deadlock", "import threading\nl = threading.Lock(); l.acquire(); l.acquire()", ("timeout",), SPIN),
    Hostile("waits for standard input", "input()", ("error",)),
    Hostile("endless shell", "while :; do :; done", ("timeout",), SPIN, ("sh",)),
    Hostile(
        "patches the clock",
        "import time, builtins\ntime.time = time.monotonic = time.perf_counter = time.process_time = lambda: 0.0\nwhile True: pass",
        ("timeout",),
        SPIN,
    ),
    Hostile(
        "numpy without end",
        "import numpy\na = numpy.ones((600, 600))\nwhile True: a = a @ a * 0 + 1",
        ("timeout",),
        SPIN,
    ),
]

PROCESSES = [
    Hostile(
        "fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", ("timeout", "memory"), SPIN
    ),
    Hostile("fork bomb in the shell", "f() { f | f & f; }; f", CAUGHT, SPIN, ("sh",)),
    Hostile(
        "thread bomb",
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()",
        ENDED,
        SPIN,
    ),
    Hostile(
        "zombies",
        "import os\nwhile True:\n    try:\n        if not os.fork(): os._exit(0)\n    except OSError: pass",
        ("timeout", "memory"),
        SPIN,
    ),
    Hostile(
        "daemon",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(1000)\n    os._exit(0)\nresult = 1",
        ("ok",),
    ),
    Hostile(
        "daemon that keeps the pipes and talks on",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    while True: print('still here', flush=True)\ntime.sleep(0.2)\nresult = 1",
        ("ok",),
    ),
    Hostile(
        "daemon after the time-out",
        "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.setsid() if os.fork() == 0 else None\nwhile True: pass",
        ("timeout",),
        SPIN,
    ),
    Hostile(
        "runs away from its group",
        "import os\nos.fork(); os.fork()\nos.setpgid(0, 0) if os.getsid(0) != os.getpid() else None\nwhile True: pass",
        ("timeout",),
        SPIN,
    ),
    Hostile("setsid in the shell", "setsid sleep 1000 & setsid nohup sleep 1000 & echo 1", ("ok",), 5.0, ("sh",)),
    Hostile("kills everybody", "import os\nos.kill(-1, 9)", CAUGHT),
    Hostile(
        "kills its supervisor",
        "import os\nfor _ in range(50):\n    os.kill(1, 9); os.kill(1, 19); os.kill(1, 15)\nresult = 1",
        ("ok",),
    ),
    Hostile("kills its parent", "import os\nos.kill(os.getppid(), 9)\nresult = 1", ("ok",)),
    Hostile("kills the engine", "import os\nos.kill(@PID@, 9)", CAUGHT),
    Hostile(
        "kills all numbers",
        "import os\nfor p in range(2, 70000):\n    if p != os.getpid():\n        try: os.kill(p, 9)\n        except OSError: pass\nresult = 1",
        ("ok",),
    ),
    Hostile("ends without a word", "import os\nos._exit(0)", ("ok",)),
    Hostile("crashes", "import ctypes\nctypes.string_at(0)", ("killed",)),
    Hostile("aborts", "import os\nos.abort()", ("killed",)),
    Hostile("kills itself", "import os\nos.kill(os.getpid(), 9)", ("killed",)),
]

MEMORY = [
    Hostile("one large block", "x = bytearray(20 * 2 ** 30)", ("memory",)),
    Hostile("many small ones", "x = []\nwhile True: x.append(bytearray(2 ** 16))", ("memory",)),
    Hostile("numpy", "import numpy\nx = [numpy.ones(10 ** 7) for _ in range(1000)]", ("memory",)),
    Hostile("doubling string", "x = 'x'\nwhile True: x += x", ("memory",)),
    Hostile(
        "shared mapping",
        "import mmap\nx = [mmap.mmap(-1, 2 ** 26) for _ in range(100)]\nfor m in x: m.write(b'1' * 2 ** 26)",
        ENDED,
    ),
    Hostile(
        "in many processes",
        "import os, time\nfor _ in range(20):\n    if os.fork() == 0: break\nx = bytearray(b'1') * (60 * 2 ** 20)\ntime.sleep(100)",
        ("memory",),
    ),
    Hostile(
        "invisible to the watch",
        "import os, time, ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nfor _ in range(20):\n    if os.fork() == 0: break\n"
        "x = bytearray(b'1') * (60 * 2 ** 20)\ntime.sleep(100)",
        ("memory",),
    ),
    Hostile(
        "page tables",
        "import mmap\nm = mmap.mmap(-1, 2 ** 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)\n"
        "for at in range(0, 2 ** 38, 2 ** 21): m[at]",
        ("memory",),
        5.0,
        ("python3",),
    ),
    Hostile("memory file", "import os\nos.memfd_create('x')", ("denied",)),
    refused("shared segment", "libc.shmget(0, 2 ** 20, 0o1600)"),
    refused("locks memory", "libc.mlockall(3)"),
    Hostile(
        "fills its shared memory",
        "with open('/dev/shm/x', 'wb') as f:\n    while True: f.write(b'1' * 2 ** 20)",
        ("error",),
    ),
    Hostile(
        "pipes",
        "import os\nx = []\nwhile True:\n    x.append(os.pipe())\n    os.write(x[-1][1], b'1' * 4096)",
        ("error",),
    ),
    Hostile(
        "catches the end of memory",
        "x = []\nwhile True:\n    try: x.append(bytearray(2 ** 20))\n    except MemoryError: pass",
        ("timeout",),
        SPIN,
    ),
    Hostile(
        "raises its own limits",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        ("error", "denied"),
    ),
]

DISK = [
    Hostile("fills its folder", "with open('x', 'wb') as f:\n    while True: f.write(b'1' * 2 ** 20)", ("error",)),
    Hostile(
        "fills it with many files",
        "for i in range(10 ** 6):\n    with open(f'f{i}', 'wb') as f: f.write(b'1' * 2 ** 16)",
        ("error",),
    ),
    Hostile("many empty files", "for i in range(10 ** 6): open(f'f{i}', 'w').close()", ("error",)),
    Hostile("sparse file", "with open('x', 'wb') as f: f.truncate(2 ** 44)", ("error",)),
    Hostile("folders without end", "import os\nwhile True:\n    os.mkdir('d'); os.chdir('d')", ("error",)),
    Hostile(
        "core dump",
        "import resource, os\nresource.setrlimit(resource.RLIMIT_CORE, (-1, -1))\nos.abort()",
        ("error", "denied"),
    ),
]

OUTSIDE = [
    Hostile("reads a key", "print(open('@SECRET@').read())", ("error", "denied")),
    Hostile("reads it by /proc", "print(open('/proc/1/root@SECRET@').read())", ("error", "denied")),
    Hostile(
        "reads it by its parent's folder",
        "import os\nprint(open(f'/proc/{os.getppid()}/cwd/../../..@SECRET@').read())",
        ("error", "denied"),
    ),
    Hostile(
        "reads it through a link",
        "import os\nos.symlink('@SECRET@', 'x')\nprint(open('x').read())",
        ("error", "denied"),
    ),
    Hostile("hard link", "import os\nos.link('@SECRET@', 'x')", ("error", "denied")),
    Hostile(
        "looks for it",
        "import os\nfor a, b, c in os.walk('/'):\n    for n in c:\n        if n.startswith('key-of'): print(open(os.path.join(a, n)).read())",
        ("ok", "timeout"),
        2.0,
    ),
    Hostile(
        "home",
        "import os, pathlib\nresult = [str(p) for p in pathlib.Path('/root').glob('*') if p.name != '.pyenv'] + os.listdir(os.path.expanduser('~'))",
        CAUGHT,
    ),
    Hostile("environment", "import os\nprint(os.environ, os.popen('env').read())", ("ok",)),
    Hostile(
        "environment of others",
        "import glob\nfor p in glob.glob('/proc/[0-9]*/environ'):\n    try: print(open(p).read())\n    except OSError: pass",
        ("ok",),
    ),
    Hostile("memory of others", "print(open('/proc/1/mem', 'rb'))", ("denied",)),
    Hostile("descriptors of others", "import os\nprint(os.listdir('/proc/1/fd'))", ("denied",)),
    Hostile("passwords", "print(open('/etc/shadow').read())", ("error", "denied")),
    Hostile("the scorer", "import importlib\nimport flowevolve.sandbox.pool", ("error",)),
    Hostile("writes outside", "open('@TARGET@', 'w').write('pwned')", ("error", "denied")),
    Hostile("writes to the system", "open('/usr/lib/pwned', 'w')", ("denied",)),
    Hostile("writes to the packages", "import json\nopen(json.__file__, 'a').write('pwned')", ("denied",)),
    Hostile("writes up the tree", "open('../../../../../../..@TARGET@', 'w').write('pwned')", ("error", "denied")),
    Hostile("writes to the root", "open('/pwned', 'w')", ("denied",)),
    Hostile("writes to /dev", "open('/dev/pwned', 'w')", ("denied",)),
    Hostile("writes through a link", "import os\nos.symlink('/usr/lib', 'x')\nopen('x/pwned', 'w')", ("denied",)),
    Hostile("sysctl", "open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x')", ("denied",)),
    Hostile("sysrq", "open('/proc/sysrq-trigger', 'w').write('b')", ("error", "denied")),
    Hostile("disks", "import os, stat\nos.mknod('/tmp/disk', stat.S_IFBLK | 0o600, os.makedev(254, 0))", ("denied",)),
    Hostile("kernel memory", "open('/dev/mem', 'rb').read(1)", ("error", "denied")),
    Hostile("terminal", "open('/dev/tty', 'w').write('pwned')", ("error", "denied")),
    Hostile("terminal of its own", "import os\nos.openpty()", ("error",)),
    Hostile("becomes root", "import os\nos.setuid(0)", ("error", "denied")),
    Hostile(
        "sudo",
        "import os\nif os.system('sudo -n true || su -c true'): raise PermissionError(1, 'refused')",
        ("denied",),
    ),
    Hostile(
        "marks a file setuid",
        "import os, shutil\nshutil.copy('/bin/sh', 'x'); os.chown('x', 0, 0); os.chmod('x', 0o4755)",
        ("error", "denied"),
    ),
]

NETWORK = [
    Hostile("TCP", "import socket\nsocket.create_connection(('127.0.0.1', @PORT@), 2).send(b'pwned')", ("denied",)),
    Hostile(
        "UDP",
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'pwned', ('127.0.0.1', @PORT@))",
        ("denied",),
    ),
    Hostile("TCP over IPv6", "import socket\nsocket.create_connection(('::1', @PORT@), 2)", ("denied", "error")),
    Hostile("names", "import socket\nsocket.gethostbyname('example.org')", ("error", "denied")),
    Hostile("raw", "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)", ("denied",)),
    Hostile("netlink", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", ("denied",)),
    Hostile("a pair of TCP sockets", "import socket\nsocket.socketpair(socket.AF_INET)", ("denied",)),
    Hostile("the host of a virtual machine", "import socket\nsocket.socket(40, socket.SOCK_STREAM)", ("denied",)),
    Hostile("kernel crypto", "import socket\nsocket.socket(38, socket.SOCK_SEQPACKET)", ("denied",)),
    Hostile("Unix socket", "import socket\nsocket.socket(socket.AF_UNIX).connect('@SOCKET@')", ("error", "denied")),
    Hostile(
        "abstract socket", "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0@ABSTRACT@')", ("error", "denied")
    ),
    Hostile("with another program", "exec 3<>/dev/tcp/127.0.0.1/@PORT@", ("error", "denied"), 5.0, ("bash",)),
]

KERNEL = [
    refused("ptrace of its supervisor", "libc.ptrace(16, 1, 0, 0)"),
    refused("ptrace of itself", "libc.ptrace(0, 0, 0, 0)"),
    refused("mount", "libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)"),
    refused("unmount", "libc.umount2(b'/tmp', 2)"),
    refused("new user namespace", "libc.unshare(0x10000000)"),
    refused(
        "new user namespace by clone",
        "libc.syscall(56 if os.uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0)",
    ),
    refused("new user namespace by clone3", "libc.syscall(435, ctypes.create_string_buffer(88), 88)"),
    refused("keys of the kernel", "libc.syscall(250 if os.uname().machine == 'x86_64' else 219, 0, -3, 1)"),
    refused("io_uring", "libc.syscall(425, 8, ctypes.create_string_buffer(120))"),
    refused("BPF", "libc.syscall(321 if os.uname().machine == 'x86_64' else 280, 0, 0, 0)"),
    refused("performance counters", "libc.syscall(298 if os.uname().machine == 'x86_64' else 241, 0, 0, -1, -1, 0)"),
    refused("sets the clock", "libc.settimeofday(ctypes.create_string_buffer(16), None)"),
    refused("kernel log", "libc.klogctl(3, ctypes.create_string_buffer(64), 64)"),
    refused("chroot", "libc.chroot(b'/tmp')"),
    refused("open by handle", "libc.open_by_handle_at(-100, ctypes.create_string_buffer(64), 0)"),
    refused("memory of others by call", "libc.process_vm_readv(1, None, 0, None, 0, 0)"),
    refused("renames the host", "libc.sethostname(b'pwned', 5)"),
    refused("a call from the future", "libc.syscall(480, 0)"),
    Hostile("moves to another core", "import os\nos.sched_setaffinity(0, range(os.cpu_count()))", ("denied",)),
    Hostile(
        "limits of its supervisor", "import resource\nresource.prlimit(1, resource.RLIMIT_CPU, (0, 0))", ("denied",)
    ),
    Hostile("priority of its supervisor", "import os\nos.setpriority(os.PRIO_PROCESS, 1, 19)", ("denied",)),
    Hostile("takes priority", "import os\nos.nice(-10)", ("denied",)),
    Hostile(
        "real-time priority", "import os\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))", ("denied",)
    ),
]

FORGED = [
    Hostile("prints a result", 'print(\'{"status": "ok", "result": 99}\')\ndef f(): raise ValueError\nf()', ("error",)),
    Hostile("prints a result on every descriptor", "import os\nfor d in range(3, 1024):\n    try: os.write(d, b'{\"code\": 0}\\n[99]\\n')\n    except OSError: pass\nresult = 1", ("error",)),
    Hostile("answers twice", "import os\nos.write(3, b'99')\nos.write(3, b' 98')\nresult = 1", ("error",)),
    Hostile("answers and fails", "import os\nos.write(3, b'99')\nraise ValueError", ("error",)),
    Hostile("closes everything", "import os\nos.closerange(0, 1024)\nresult = 1", ("error",)),
    Hostile("no number", "result = float('nan')", ("error",)),
    Hostile("no number, by hand", "import os\nos.write(3, b'[NaN, Infinity]')\nos._exit(0)", ("error",)),
    Hostile("beyond floats", "import os\nos.write(3, b'[1e999]')\nos._exit(0)", ("error",)),
    Hostile("an integer beyond floats", "import os\nos.write(3, b'9' * 4000)\nos._exit(0)", ("error",)),
    Hostile("an integer beyond reading", "import os\nos.write(3, b'9' * 50000)\nos._exit(0)", ("error",)),
    Hostile("half a character", "result = '\\ud800'", ("error",)),
    Hostile("deep", "import os\nos.write(3, b'[' * 50000 + b']' * 0)\nos._exit(0)", ("error",)),
    Hostile("deep and whole", "import os\nos.write(3, b'[' * 900 + b']' * 900)\nos._exit(0)", ("error",)),
    Hostile("too long", "result = 'x' * 2 ** 24", ("error",)),
    Hostile("not text", "import os\nos.write(3, b'\\xff\\xfe1\\x00')\nos._exit(0)", ("error",)),
    Hostile("no JSON at all", "result = {1, 2}", ("error",)),
    Hostile("a pickle", "import os, pickle\nos.write(3, pickle.dumps(print))\nos._exit(0)", ("error",)),
    Hostile("patches json", "import json\njson.dumps = lambda *a, **k: 'Infinity'\njson.JSONEncoder.encode = json.dumps\nresult = 1", CAUGHT),
    Hostile("patches everything", "import sys, os, builtins, pickle, time\nfor m in list(sys.modules.values()):\n    for n in list(getattr(m, '__dict__', ())):\n        if callable(m.__dict__[n]) and n not in ('callable', 'getattr', 'list'):\n            try: setattr(m, n, None)\n            except Exception: pass\n", CAUGHT),
    Hostile("patches the end", "import sys, os\nsys.exit = os._exit = lambda *a: None\nresult = 1", CAUGHT),
    Hostile("an exception that fights back", "class E(BaseException):\n    def __str__(self): raise E\n    __repr__ = __str__\nraise E", ("error",)),
    Hostile("patches the runner", "import sys\nfor n in list(sys.modules):\n    if n.startswith('flowevolve'):\n        for k in list(vars(sys.modules[n])): vars(sys.modules[n])[k] = None\nresult = 1", CAUGHT),
    Hostile("frames of the runner", "import sys\nf = sys._getframe()\nwhile f:\n    for k, v in list(f.f_locals.items()):\n        if k == 'request': print(v)\n    f = f.f_back\nresult = 1", ("ok",)),
    Hostile("floods output", "import os\nwhile True: os.write(1, b'x' * 2 ** 16); os.write(2, b'y' * 2 ** 16)", ("timeout",), SPIN),
    Hostile("floods the result", "import os\nwhile True: os.write(3, b'1' * 2 ** 16)", ("timeout",), SPIN),
    Hostile("pretends to be out of memory", "import os\nos._exit(201)", ("memory",)),
]  # fmt: skip

PROGRAMS = [*TIME, *PROCESSES, *MEMORY, *DISK, *OUTSIDE, *NETWORK, *KERNEL, *FORGED]
