"""Runs in the sandbox before a program of several files, and lets the program import these files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType


class FilesInMemory(MetaPathFinder, Loader):
    """Imports modules from texts by their paths, such as ``helper.py`` and ``parts/one.py``."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        place = fullname.replace(".", "/")
        for file, is_package in ((f"{place}.py", False), (f"{place}/__init__.py", True)):
            if file in self._files:
                return spec_from_loader(fullname, self, origin=file, is_package=is_package)
        if any(file.startswith(f"{place}/") for file in self._files):
            return spec_from_loader(fullname, self, origin=place, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        file = str(module.__spec__.origin if module.__spec__ else "")
        execute(self._files.get(file, ""), file, module.__dict__)


def execute(source: str, file: str, names: dict[str, object]) -> None:
    exec(compile(source, file, "exec", dont_inherit=True), names)  # noqa: S102 - it is in the sandbox


def start(files: Mapping[str, str], main: str, names: dict[str, object]) -> None:
    """Execute the file ``main`` in ``names``, with all files importable."""
    sys.meta_path.insert(0, FilesInMemory(files))
    execute(files[main], main, names)
