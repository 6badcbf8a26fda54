"""Temporary folders: gone at the end, swept where that was a kill, and nobody else's are touched."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve._util.work_folders import sweep, user_folder, work_folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(name: str) -> Path:
    """A folder of ours in which nobody works."""
    folder = user_folder() / name
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "file").write_text("x")
    return folder


def test_it_is_gone_at_the_end_whatever_was_done_in_it() -> None:
    with work_folder("program") as folder:
        (folder / "closed").mkdir()
        (folder / "closed" / "file").write_text("x")
        (folder / "closed").chmod(0)
        assert folder.parent.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_what_nobody_works_in_is_swept_and_what_somebody_works_in_stays() -> None:
    with work_folder("program") as mine:
        (mine / "file").write_text("x")
        old = left("program-old")
        (user_folder() / "core-0").touch()
        sweep()
        assert not old.exists()
        assert (mine / "file").exists()
        assert (user_folder() / "core-0").exists()


def test_a_killed_process_holds_nothing(temporary: Path) -> None:
    source = (
        "import sys\nfrom flowevolve._util.work_folders import work_folder\n"
        "with work_folder('program') as folder:\n    print(folder, flush=True)\n    sys.stdin.read()\n"
    )
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", source]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        sweep()
        assert folder.is_dir()  # it lives
        process.kill()
        process.wait()
    assert folder.is_dir()
    sweep()
    assert not folder.exists()


def test_no_link_is_followed(temporary: Path) -> None:
    (temporary / "precious").mkdir()
    (temporary / "precious" / "file").write_text("x")
    old = left("program-old")
    (old / "out").symlink_to(temporary / "precious")
    (user_folder() / "program-link").symlink_to(temporary / "precious")
    sweep()
    assert not old.exists()
    assert (temporary / "precious" / "file").read_text() == "x"
    assert (user_folder() / "program-link").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_belongs_to_somebody_else_stays() -> None:
    old = left("program-old")
    os.chown(old, 12345, 12345)
    sweep()
    assert (old / "deep" / "er" / "file").exists()


def test_where_there_is_none_there_is_nothing_to_sweep() -> None:
    sweep()


def test_a_folder_that_is_not_ours_is_refused(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir()
    user_folder().symlink_to(temporary / "elsewhere")
    with pytest.raises(InputError, match=r"belongs to somebody else.*TMPDIR"), work_folder("program"):
        pass
    assert list((temporary / "elsewhere").iterdir()) == []
