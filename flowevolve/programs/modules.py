"""Finds the files of a problem folder that a program imports, which go with it where it can't read the folder."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path


def imported_modules(folder: Path, source: str, suffix: str, hidden: Collection[str]) -> dict[str, str]:
    """Return the texts of the folder's Python files that a program imports, directly or through others, by their paths.

    A package counts with all of its files. The result is empty for programs in other languages (``suffix`` is that of
    the program's file). Files that can't be read are left out, and so are the paths in ``hidden``, such as the
    evaluator's own file.
    """
    found: dict[str, str] = {}
    waiting = [source] if suffix == ".py" else []
    while waiting:
        for package in _packages(waiting.pop()):
            for file in _files(folder, package):
                path = str(file.relative_to(folder))
                if path not in found and path not in hidden and (text := _text(file)) is not None:
                    found[path] = text
                    waiting.append(text)
    return found


def _packages(source: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(str(module), level=0):
                yield module.partition(".")[0]


def _files(folder: Path, package: str) -> list[Path]:
    if (folder / package / "__init__.py").is_file():
        return sorted((folder / package).rglob("*.py"))
    file = folder / f"{package}.py"
    return [file] if file.is_file() else []


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
