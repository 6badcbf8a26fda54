"""Nothing that came from outside is loaded in a way that could run it: who uses such a way says here what it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("flowevolve", "stages", "policies", "bench", "tools")

MODULES = {
    "pickle",
    "_pickle",
    "cPickle",
    "cloudpickle",
    "dill",
    "shelve",
    "marshal",
    "joblib",
    "jsonpickle",
    "pandas.io.pickle",
}
"""What these load can run anything."""
CALLS = {
    "eval",
    "exec",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "torch.load",
    "pd.read_pickle",
    "pandas.read_pickle",
}
"""And these calls."""

READS = {
    ("flowevolve/compat/signed_pickles.py", "pickle"): "objects of the user's own, signed with a key only the user has",
    ("flowevolve/compat/dspy/adapter.py", "cloudpickle"): "what stands inside such a signed pickle, and nothing else",
    ("flowevolve/programs/loader.py", "exec"): "a program, inside the sandbox",
    ("flowevolve/sandbox/inside/candidate.py", "exec"): "a program, inside the sandbox",
    ("flowevolve/sandbox/inside/served.py", "exec"): "a program, inside the sandbox",
    ("flowevolve/problems/drivers/streams.py", "exec"): "a program, inside the sandbox",
    ("flowevolve/programs/inside/driver.py", "exec"): "a program, inside the sandbox",
    ("flowevolve/algorithms/meta_harness/driver.py", "exec"): "a harness, inside the sandbox",
    ("bench/programs/quick_task.py", "exec"): "programs of the bench's own, to compare with",
}
"""File, way of loading, and what is read so."""


def unsafe(source: str) -> Iterator[str]:
    """The ways of loading that a module uses and that could run what is loaded."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in MODULES)
            case ast.ImportFrom(module=module) if module in MODULES:
                yield module
            case ast.Call(func=function, keywords=keywords):
                called = ast.unparse(function)
                if called in CALLS:
                    yield called
                if any(each.arg == "allow_pickle" and not _is_false(each.value) for each in keywords):
                    yield "allow_pickle"
                if called.endswith(".extractall") and not any(each.arg == "filter" for each in keywords):
                    yield "extractall"


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def test_whoever_loads_what_could_run_says_what_it_reads() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), way)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for way in unsafe(path.read_text(encoding="utf-8"))
    }
    assert found == set(READS)


@pytest.mark.parametrize(
    ("source", "way"),
    [
        ("import pickle", "pickle"),
        ("from cloudpickle import loads", "cloudpickle"),
        ("import numpy\nnumpy.load(f, allow_pickle=True)", "allow_pickle"),
        ("import yaml\nyaml.load(text, yaml.Loader)", "yaml.load"),
        ("archive.extractall(folder)", "extractall"),
        ("eval(text)", "eval"),
    ],
)
def test_such_ways_are_seen(source: str, way: str) -> None:
    assert list(unsafe(source)) == [way]
