"""The process of one program: it sets limits, runs the program and writes the result. Nothing trusts this process.

Its exit code says how the program ended. Whatever the program does to this process, it only affects its own exit code,
output and result.
"""

from __future__ import annotations

import builtins
import errno
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import NoReturn

from flowevolve.sandbox.inside import files, imports, kernel, syscall_filter
from flowevolve.sandbox.inside.wire import Request

with suppress(ImportError):  # Windows has none, and programs are refused there
    import resource

FAILED, OUT_OF_MEMORY, DENIED = 1, 201, 202
"""Exit codes for an exception, a refused allocation of memory, and a forbidden action."""
RESULT = 3
"""The descriptor to which the result is written."""
_NOT_PERMITTED = {errno.EPERM, errno.EACCES, errno.EROFS, errno.ENETUNREACH, errno.ENOSYS}
_OPEN_FILES = 256
_OPEN_FILES_MEASURED = 64
"""The limit while memory is measured, because data in pipes, up to 64 kB each, is not counted."""
_SIGNALS_PENDING = 1024


def become_program(request: Request, streams: Sequence[int]) -> NoReturn:
    """Run the program in this process. ``streams`` are the descriptors for input, output, errors, the result, and the
    channel if there is one.
    """
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _move(streams)
        folder = request.folder or "/tmp"  # noqa: S108 - a fresh one, nobody else's
        os.chdir(folder)
        path = f"{folder}/{request.name}"
        files.write(path, request.source.encode())
        if request.folder is not None:
            os.environ.update(HOME=folder, TMPDIR=folder)
        _limit(request)
        if request.command is not None:
            _become_command([*request.command, path])
        code = _run(request, path)
    except BaseException as error:  # noqa: BLE001 - this process ends here, and says why
        code = _explain(error)
    finish(code)


def _become_command(words: list[str]) -> NoReturn:
    try:
        os.execvp(words[0], words)  # noqa: S606 - that is what was asked for
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode())
        os._exit(FAILED)


def finish(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001, S112 - the program may have put anything there
            continue
    os._exit(code)


def _move(streams: Sequence[int]) -> None:
    """Make these streams the descriptors from 0 on and close all others. Processes that the program starts inherit only
    the first three.
    """
    high = [os.dup2(stream, 100 + place) for place, stream in enumerate(streams)]
    for place, stream in enumerate(high):
        os.dup2(stream, place, inheritable=place < RESULT)
    os.closerange(len(streams), os.sysconf("SC_OPEN_MAX"))


def _limit(request: Request) -> None:
    """Set resource limits and the filter of system calls; neither can be undone."""
    kernel.allow_looking_in(True)  # so that its /proc/self belongs to it
    files.write("/proc/self/oom_score_adj", b"1000")  # the first to be killed if the machine runs out of memory
    if request.core is not None:
        os.sched_setaffinity(0, {request.core})
    cpu_seconds = int(request.timeout * max(1, request.processes)) + 1
    mapped = int(files.read("/proc/self/statm").split()[0]) * resource.getpagesize()
    limits = {
        resource.RLIMIT_CORE: 1,  # unlike 0, it also keeps a system's crash handler from starting
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_DATA: mapped + request.memory,
        resource.RLIMIT_FSIZE: request.disk,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES if request.core is None else _OPEN_FILES_MEASURED,
        resource.RLIMIT_SIGPENDING: _SIGNALS_PENDING,
    }
    if request.command is None:  # the runtimes of other languages reserve far more than they use
        limits[resource.RLIMIT_AS] = mapped + request.memory
    if request.folder is None:  # without namespaces, this would count all processes of the user
        limits[resource.RLIMIT_NPROC] = request.processes + 1  # and its supervisor
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (bound, bound))
    kernel.drop_capabilities()
    kernel.install_filter(syscall_filter.filter_here())


def _run(request: Request, path: str) -> int:
    """Run the program as Python, and write its result."""
    write, encode = os.write, json.dumps
    _reseed()
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins)
    sys.modules["__main__"] = module
    sys.argv = [path]
    if request.packages is not None:
        imports.permit(request.packages, path)
    exec(compile(request.source, path, "exec"), module.__dict__)  # noqa: S102 - what all of this is for
    names = module.__dict__
    result = names.get("result") if request.call is None else _called(names[request.call], request)
    left = memoryview(encode(result, allow_nan=False).encode())
    while left:
        left = left[write(RESULT, left[: 2**16]) :]
    return 0


def _called(function: Callable[..., object], request: Request) -> object:
    if isinstance(request.arguments, dict):
        return function(**request.arguments)
    if isinstance(request.arguments, list):
        return function(*request.arguments)
    return function(request.arguments)


def _reseed() -> None:
    """Seed the random generators anew, because otherwise all forks would draw the same numbers."""
    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


def _explain(error: BaseException) -> int:
    """Print the error's traceback without our own frames, and return the exit code."""
    if isinstance(error, SystemExit):
        if isinstance(error.code, str):
            os.write(2, error.code.encode("utf-8", "replace") + b"\n")
        return error.code & 0xFF if isinstance(error.code, int) else int(error.code is not None)
    try:
        own = error.__traceback__
        while own is not None and own.tb_frame.f_code.co_filename == __file__:
            own = own.tb_next
        text = "".join(traceback.format_exception(type(error), error, own, limit=20))
        os.write(2, text.encode("utf-8", "replace"))
    except BaseException:  # noqa: BLE001, S110 - the program may have broken what is needed for it
        pass
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    if isinstance(error, OSError) and error.errno in _NOT_PERMITTED:
        return DENIED
    return FAILED
