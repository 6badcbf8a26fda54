"""The public names and their parameters change on purpose only."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import resolve_name

import pytest

import flowevolve as fe
from flowevolve import stages
from tests.support.public_surface import SNAPSHOT, surface


def test_the_public_surface_is_the_one_written_down() -> None:
    now, written = surface().splitlines(), SNAPSHOT.read_text(encoding="utf-8").splitlines()
    changed = [f"+ {line}" for line in now if line not in written] + [
        f"- {line}" for line in written if line not in now
    ]
    assert changed == [], "if it is meant, and in the changelog: python -m tests.support.public_surface"


def test_dir_shows_public_names_alone_whatever_was_imported() -> None:
    code = "import flowevolve as fe, flowevolve.runner.run; before = dir(fe); fe.Budget, fe.optimize; print(before == dir(fe))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    assert set(dir(fe)) == {"__version__", *vars(fe)["__all__"]}


def test_the_version_has_three_numbers() -> None:
    assert [number.isdigit() for number in fe.__version__.split(".")] == [True] * 3


def test_a_module_that_was_not_imported_is_named() -> None:
    code = "import flowevolve\ntry:\n    flowevolve.compat\nexcept AttributeError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "module 'flowevolve' has no attribute 'compat': import flowevolve.compat\n"


def test_an_old_name_still_works_and_warns_where_it_is_written() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"stages\.Update is now flowevolve\.stages\.Commit: write that"
    ) as caught:
        old = stages.Update
    assert old is stages.Commit
    assert caught[0].filename == __file__
    assert "Update" not in dir(stages)
    with pytest.raises(AttributeError, match="has no attribute 'Updates'"):
        resolve_name("flowevolve.stages.Updates")
