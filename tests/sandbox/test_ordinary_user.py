"""The hostile programs once more as an ordinary user, where the tests run as root: the sandbox is made in another way.

That user is nobody, in a mount namespace where the way to the interpreter and the tests is open to everybody.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.depth import LONG
from tests.support.killed import NOBODY

ROOT = Path(__file__).parents[2]
HOSTILE = Path(__file__).with_name("test_hostile.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of nobody's: pytest's own are below one that is root's alone."""
    with tempfile.TemporaryDirectory(prefix="ordinary-user-") as path:
        os.chown(path, NOBODY, NOBODY)
        yield Path(path)


def closed_ways() -> dict[Path, set[Path]]:
    """Folders that only their owner may enter, each with what is needed below it."""
    found = dict[Path, set[Path]]()
    for needed in (Path(sys.base_prefix), Path(sys.prefix), ROOT):
        closed = [each for each in reversed(needed.parents) if not each.stat().st_mode & 0o001]
        if closed:
            found.setdefault(closed[0], set()).add(needed)
    return found


def opening(stand_ins: Path) -> str:
    """The script that puts folders everybody may enter in place of those, with nothing in them but what is needed."""
    lines = ["set -e"]
    for number, (closed, needed) in enumerate(closed_ways().items()):
        for each in needed:
            there = shlex.quote(str(stand_ins / str(number) / each.relative_to(closed)))
            lines += [f"mkdir -p {there}", f"mount --rbind {shlex.quote(str(each))} {there}"]
        lines.append(f"mount --rbind {shlex.quote(str(stand_ins / str(number)))} {shlex.quote(str(closed))}")
    return "\n".join(lines)


@pytest.mark.skipif(not LONG, reason="belongs to the long form")
@pytest.mark.skipif(os.geteuid() != 0, reason="all tests run as an ordinary user already")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="there is no setpriv here to become an ordinary user with")
def test_hostile_programs_do_no_harm_as_an_ordinary_user(folder: Path, tmp_path: Path) -> None:
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), str(HOSTILE)]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    script = f"{opening(tmp_path)}\nexec {shlex.join([*user, *tests])}"
    alone = ["unshare", "--mount"] if closed_ways() else []
    own = {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [*alone, "sh", "-c", script],
        cwd=folder,
        env={**kept, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    assert " passed" in ended.stdout
    assert " skipped" not in ended.stdout
