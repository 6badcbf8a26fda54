"""The command that starts a zygote: bubblewrap around a Python interpreter that sees hardly anything else."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import inside
from flowevolve.sandbox.inside.syscall_filter import MACHINES
from flowevolve.sandbox.inside.zygote import Setup

INSTALL = "install it (Debian, Ubuntu: apt-get install bubblewrap)"
RISK = 'set sandbox.isolation = "limits": programs can then read your files and keys, and kill your processes'

_HERE = "/run/flowevolve"
"""The folder of the zygote's code, inside the sandbox."""
_PACKAGES = "/run/packages"
_READABLE = "/run/readable"
_START = """\
import sys, types
for name in ("flowevolve", "flowevolve.sandbox", "flowevolve.sandbox.inside"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
sys.modules[name].__path__.append(sys.argv[1])
from flowevolve.sandbox.inside import zygote
sys.exit(zygote.main(zygote.Setup(**zygote.json.loads(sys.argv[2]))))
"""
"""Runs the zygote without its parent packages, which are not visible or would import the rest of flowevolve."""
_USER = 1_879_048_192
"""The id of the user that programs run as if we are root; no system assigns it."""
_SMALL = 16 * 2**20
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf", "mime.types")
_CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID")
"""The capabilities that root keeps inside the sandbox until it has become another user."""
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - each program has its own
    "TMPDIR": "/tmp",  # noqa: S108
    "LANG": "C.UTF-8",
    "USER": "sandbox",
    "PYTHONHASHSEED": "0",  # sets have the same order in every run
    "PYTHONUTF8": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MALLOC_ARENA_MAX": "2",  # because reserved memory counts as used
    "OMP_NUM_THREADS": "1",  # because a program has one core
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def find_bubblewrap() -> str:
    """The path of bwrap.

    Raises:
        InputError: if it is not installed; the message says how to install it.
    """
    found = shutil.which("bwrap")
    if found is None:
        raise InputError(f"sandbox: bubblewrap (bwrap) is not installed; {INSTALL}, or {RISK}")
    return found


def check_machine() -> None:
    """Raises: InputError if programs can't be isolated or limited on this machine at all."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        here = f"{platform.system()} on {platform.machine()}"
        raise InputError(
            f"sandbox: programs run on Linux on {' or '.join(MACHINES)}, but this is {here}; run flowevolve in Docker "
            "(docker run --privileged -it -v .:/work -w /work python:3.12 bash), or evolve prompts, which run here"
        )
    if sys.maxsize < 2**32:
        raise InputError(
            "sandbox: this is a 32-bit Python, whose system calls have other numbers; run flowevolve with a 64-bit one"
        )


def command(settings: SandboxSettings, control: int, info: int) -> list[str]:
    """The command of a zygote. ``control`` is its socket; bubblewrap writes its process id to ``info``."""
    isolated = settings.isolation == "bubblewrap"
    setup = Setup(
        control,
        isolated,
        _USER if isolated and os.geteuid() == 0 else None,
        list(_packages().values() if isolated else map(str, _packages())),
        list(settings.preload),
        min(settings.disk_mb * 2**20, _SMALL),
    )
    code = _HERE if isolated else str(Path(inside.__file__).parent)
    interpreter = [str(_interpreter()), "-P", "-s", "-S", "-c", _START, code, json.dumps(asdict(setup))]
    if not isolated:
        return interpreter
    return [find_bubblewrap(), *_view(readable(settings)), *_separation(info), "--", *interpreter]


def readable(settings: SandboxSettings) -> dict[Path, str]:
    """The folders that programs may read, with their paths inside the sandbox.

    Raises:
        InputError: if one is no folder, or the user that programs run as may not read it.
    """
    found: dict[Path, str] = {}
    for number, folder in enumerate(dict.fromkeys(path.resolve() for path in settings.readable)):
        if not folder.is_dir():
            raise InputError(f"sandbox.readable: {folder}: there is no such folder")
        if settings.isolation == "limits":
            found[folder] = str(folder)
            continue
        if os.geteuid() == 0 and folder.stat().st_mode & 0o005 != 0o005:
            raise InputError(
                f"sandbox.readable: {folder}: programs run as a user who may not read it; chmod -R o+rX {folder}"
            )
        found[folder] = f"{_READABLE}/{number}"
    return found


def check_folders(settings: SandboxSettings) -> None:
    """Check the folders that programs may read and, if bubblewrap isolates programs, also their contents.

    Raises:
        InputError: as in `readable` and `check_contents`.
    """
    folders = readable(settings)
    if settings.isolation == "bubblewrap":
        check_contents(folders)


def check_contents(folders: Iterable[Path]) -> None:
    """Look for sockets, pipes and devices in the folders: they work even on a read-only file system.

    Raises:
        InputError: if there is one; the message names the first.
    """
    ahead = list(folders)
    while ahead:
        with suppress(PermissionError), os.scandir(ahead.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    ahead.append(Path(entry.path))
                elif not entry.is_symlink() and not entry.is_file():
                    raise InputError(
                        f"sandbox.readable: {entry.path} is a socket, a pipe or a device, through which programs could "
                        "reach what is outside; take it out of the folder, or name folders without it"
                    )


def _separation(info: int) -> list[str]:
    arguments = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--new-session", "--hostname", "sandbox", "--info-fd", str(info), "--clearenv"]
    for name, value in ENVIRONMENT.items():
        arguments += ["--setenv", name, value]
    if os.geteuid() == 0:
        return arguments + [part for name in _CAPABILITIES for part in ("--cap-add", name)]
    return [*arguments, "--unshare-user", "--cap-drop", "ALL"]


def _view(more: Mapping[Path, str]) -> list[str]:
    """bubblewrap's arguments for what programs can see: a read-only system, the interpreter and its packages, the
    package `inside`, and the folders of ``more``.
    """
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    arguments += ["--perms", "0755", "--dir", "/etc"]  # else only root could enter such a folder
    for name in _ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    base = Path(sys.base_prefix).resolve()
    if not base.is_relative_to("/usr"):
        for parent in reversed(base.parents[:-1]):
            arguments += ["--perms", "0755", "--dir", str(parent)]
        arguments += ["--ro-bind", str(base), str(base)]
    arguments += ["--perms", "0755", "--dir", _PACKAGES]
    for folder, there in _packages().items():
        arguments += ["--ro-bind", str(folder), there]
        if (folder / "flowevolve").is_dir():  # programs must not see evaluators
            arguments += ["--tmpfs", f"{there}/flowevolve"]
            if folder.is_relative_to("/usr") or folder.is_relative_to(base):
                arguments += ["--tmpfs", str(folder / "flowevolve")]
    arguments += ["--ro-bind", str(Path(inside.__file__).parent), _HERE]
    if more:
        arguments += ["--perms", "0755", "--dir", _READABLE]
    for folder, there in more.items():
        arguments += ["--ro-bind", str(folder), there]
    arguments += _devices()
    arguments += ["--size", str(_SMALL), "--tmpfs", "/tmp"]  # noqa: S108 - inside
    # Root mounts /proc itself, because bubblewrap covers parts of its own, and the kernel then allows no other inside.
    arguments += ["--dir", "/proc"] if os.geteuid() == 0 else ["--proc", "/proc"]
    return [*arguments, "--chdir", "/tmp", "--remount-ro", "/dev", "--remount-ro", "/"]  # noqa: S108 - inside


def _devices() -> list[str]:
    """bubblewrap's arguments for ``/dev``.

    There are no terminals, because all programs would share them and could load line disciplines of the kernel through
    them. There is no ``/dev/zero``, because memory mapped from it persists, uncounted, when no process has it in its
    page tables.
    """
    arguments = ["--perms", "0755", "--size", str(2**20), "--tmpfs", "/dev", "--perms", "0755", "--dir", "/dev/shm"]  # noqa: S108
    for name in ("null", "full", "random", "urandom"):
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        arguments += ["--symlink", f"/proc/self/{target}", f"/dev/{name}"]
    return arguments


def _interpreter() -> Path:
    """The interpreter itself; inside a virtual environment, the one from which that was made."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = Path(sys.base_prefix, "bin", version)
    return (found if found.exists() else Path(sys.executable)).resolve()


def _packages() -> dict[Path, str]:
    """The folders of installed packages, with their paths inside. These differ because the originals may be below
    ``/tmp``.
    """
    found = [Path(entry).resolve() for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    return {folder: f"{_PACKAGES}/{number}" for number, folder in enumerate(dict.fromkeys(found))}


def package_folders() -> list[Path]:
    """The folders of installed packages from which programs import."""
    return list(_packages())
