"""The docs name nothing that is gone, and their picture of the house is the one that the imports are held to."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.test_imports import TIERS, modules

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BENCHMARKS = {DOCS / "benchmarks.md", *(DOCS / "benchmarks").glob("*.md")}
PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")} - BENCHMARKS)
"""The pages of benchmarks are left out: they record commands as they were given."""
ROOMS = set[str]().union(*TIERS)
FOLDERS = ROOMS | {"flowevolve", "bench", "docs", "examples", "tests", "tools"}
MODULES = modules()
ELSEWHERE = {"GEPAAdapter", "Infinity", "MappingProxyType", "NaN"}
"""What the docs name that is not of this package."""

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"`([^`\n]+)`")
_IMPORT = re.compile(r"^\s*from (flowevolve[\w.]*) import ([\w, ]+)$|^\s*import (flowevolve[\w.]*)", re.MULTILINE)
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_CLASS = re.compile(r"[A-Z]\w*[a-z]\w*")
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)*/?")


def _architecture() -> str:
    return (DOCS / "architecture.md").read_text(encoding="utf-8")


def _room_lines() -> list[str]:
    return re.findall(r"^\| `(\w+)/` \|", _architecture(), re.MULTILINE)


def test_the_picture_shows_the_tiers() -> None:
    picture = _architecture().split("```")[1]
    tiers = [set(line.split()) for line in picture.splitlines()[1:] if re.search("[a-z]", line)]
    assert tiers[::-1] == TIERS


def test_every_room_has_a_line() -> None:
    assert sorted(_room_lines()) == sorted(ROOMS)


@cache
def _tree(module: str) -> ast.Module | None:
    path = MODULES.get(module)
    return None if path is None else ast.parse(path.read_text(encoding="utf-8"))


def _names_in(body: Iterable[ast.stmt]) -> dict[str, ast.stmt]:
    """What a module or a class binds by its own statements."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = node
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found.update({alias.asname or alias.name: node for alias in names})
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
            case ast.If(body=inner):
                found.update(_names_in(inner))
    return found


@cache
def _groups() -> set[str]:
    """The groups of entry points, which are named like modules."""
    found = set[str]()
    for module in MODULES:
        for node in ast.walk(_tree(module) or ast.Module(body=[], type_ignores=[])):
            match node:
                case ast.Call(func=ast.Name(id="Registry"), args=[_, ast.Constant(value=str(group)), *_]):
                    found.add(group)
    return found


@cache
def _payload_kinds() -> set[str]:
    """The names of their own that the journal keeps classes under."""
    found = set[str]()
    for module in MODULES:
        for node in ast.walk(_tree(module) or ast.Module(body=[], type_ignores=[])):
            match node:
                case ast.Call(func=ast.Name(id="payload"), args=[ast.Constant(value=str(name))]):
                    found.add(name)
    return found


@cache
def _members() -> dict[str, set[str]]:
    """What the classes of the package have that they define themselves; other names of modules have nothing."""
    found: dict[str, set[str]] = {}
    for module in MODULES:
        tree = _tree(module)
        for name, node in _names_in([] if tree is None else tree.body).items():
            members = found.setdefault(name, set())
            if isinstance(node, ast.ClassDef):
                members.update(_names_in(node.body), _attributes_set_in(node))
    return found


def _attributes_set_in(node: ast.ClassDef) -> set[str]:
    return {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)}


def _resolves(name: str) -> bool:
    """Whether a dotted name is that of a module, or of something in one."""
    if _tree(name) is not None:
        return True
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        tree = _tree(".".join(parts[:length]))
        if tree is not None:
            return parts[length] in _names_in(tree.body) and _has(parts[length:])
    return False


def _has(names: Sequence[str]) -> bool:
    """Whether a name in a module is one alone, or one of a class that has the next."""
    return len(names) == 1 or not names[0][0].isupper() or names[1] in _members()[names[0]]


def _is_gone(quoted: str) -> bool:
    """Whether what stands in backticks names something of ours that is not there."""
    name = quoted.split("(", maxsplit=1)[0]
    if name in _payload_kinds():
        return False
    if _DOTTED.fullmatch(name):
        first, last = name.split(".")[0], name.split(".")[-1]
        if first == "fe":
            return not _resolves(name.replace("fe", "flowevolve", 1))
        if first == "flowevolve":
            return not _resolves(name) and name not in _groups()
        if first in ROOMS and _CLASS.fullmatch(last):
            return not _resolves(f"flowevolve.{name}")
        if _CLASS.fullmatch(first) and name.count(".") == 1:
            return first not in _members() or not _has([first, last])
        return False
    if _CLASS.fullmatch(name):
        return name not in _members() and not hasattr(builtins, name) and name not in ELSEWHERE
    if _PATH.fullmatch(quoted) and "/" in quoted and quoted.split("/", maxsplit=1)[0] in FOLDERS:
        return not any((folder / quoted).exists() for folder in (ROOT, ROOT / "flowevolve"))
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_docs_name_nothing_that_is_gone(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    quoted = _QUOTED.findall(_FENCE.sub("", text))
    imported = [
        f"{module}.{name.strip()}" if name else whole
        for module, names, whole in _IMPORT.findall(text)
        for name in (names.split(",") if names else [""])
    ]
    gone = [name for name in quoted if _is_gone(name)] + [name for name in imported if not _resolves(name)]
    assert sorted(set(gone)) == []
