"""Finds the files of a problem folder that a program imports, which go with it where it can't read the folder."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from flowevolve.sandbox.isolation import package_folders


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
            for file in files_of(folder, package):
                path = str(file.relative_to(folder))
                if path not in found and path not in hidden and (text := text_of(file)) is not None:
                    found[path] = text
                    waiting.append(text)
    return found


def files_of(folder: Path, package: str) -> list[Path]:
    """The Python files of a folder's module or package of this name; none if the folder has no such module.

    A package without an ``__init__.py`` counts, too, unless an installed one has the same name: Python prefers that.
    """
    file, package_folder = folder / f"{package}.py", folder / package
    regular = (package_folder / "__init__.py").is_file()
    if not regular and file.is_file():
        return [file]
    return sorted(package_folder.rglob("*.py")) if regular or not is_installed(package) else []


def is_installed(package: str) -> bool:
    """Whether programs in the sandbox can import a package."""
    folders = [str(folder) for folder in package_folders()]
    return package in sys.stdlib_module_names or PathFinder.find_spec(package, folders) is not None


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


def text_of(file: Path) -> str | None:
    """The text of a file; None if it can't be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return None
