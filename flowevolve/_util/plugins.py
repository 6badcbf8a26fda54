"""The plug-ins of installed packages, by entry-point group. They are looked up and imported only when needed."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from flowevolve._util.renamed import renamed


class LoadError(Exception):
    """The object that a plug-in names can't be imported. The message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point: the object that it names (``package.module:attribute``), and its package with the version."""

    name: str
    target: str
    package: str

    def load(self) -> object:
        """Raises:
        LoadError: as `imported`.
        """
        return imported(self.target)


def installed(group: str) -> list[Plugin]:
    """The plug-ins of a group, sorted by name. An entry point that is on the path twice counts once."""
    points = {
        Plugin(
            point.name, point.value, f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        )
        for point in entry_points(group=group)
    }
    return sorted(points, key=lambda plugin: (plugin.name, plugin.package, plugin.target))


_FOLDER: ContextVar[Path | None] = ContextVar("flowevolve_folder", default=None)


@contextmanager
def looking_in(folder: Path | None) -> Generator[None]:
    """Look for modules that are not on Python's path in this folder, too; with None, only in the working folder.

    Different folders may have modules of the same name, which are never confused: as soon as something is imported for
    another folder, the modules of this one leave ``sys.modules``. They come back, as the same objects, when it is this
    folder's turn again. An import inside a function that runs later looks in the folder whose turn it is then.
    """
    if folder is None:
        yield
        return
    before = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(before)


@dataclass(slots=True)
class _Modules:
    """The modules found outside Python's path. Only those of one configuration's folder are there at a time."""

    folder: Path | None = None
    """The folder whose turn it is."""
    added: list[str] = field(default_factory=list)
    """What was added to Python's path for this folder."""
    aside: dict[Path | None, tuple[list[str], dict[str, ModuleType]]] = field(default_factory=dict)
    """For each other folder: what was added to the path, and the modules that were imported for it."""

    def turn_to(self, folder: Path) -> None:
        """Put the modules of another folder aside, and bring back those that were imported for this one."""
        if folder == self.folder:
            return
        ours = {name for name, module in sys.modules.items() if "." not in name and folder_of(module) in self.added}
        put_aside = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ours}
        for name in put_aside:
            del sys.modules[name]
        sys.path[:] = [path for path in sys.path if path not in self.added]
        self.aside[self.folder] = self.added, put_aside
        self.added, back = self.aside.pop(folder, ([], {}))
        self.folder = folder
        sys.modules.update(back)
        sys.path.extend(self.added)
        invalidate_caches()

    def add(self, folder: Path) -> None:
        """Have Python look for modules in this folder, too."""
        sys.path.append(str(folder))
        self.added.append(str(folder))
        invalidate_caches()


def folder_of(module: ModuleType) -> str | None:
    """The folder that a module or a package lies in."""
    spec = getattr(module, "__spec__", None)
    if spec is None:
        return None
    place = next(iter(spec.submodule_search_locations or ()), spec.origin)
    return None if place is None else str(Path(place).parent)


_MODULES = _Modules()


def imported(target: str) -> object:
    """Import ``package.module:attribute`` from Python's path or else from the folder of `looking_in` or the working
    folder.

    Raises:
        LoadError: whatever goes wrong in the import, because a broken plug-in must not end what works without it.
    """
    module, _, attribute = target.partition(":")
    module = module.strip()
    _extend_path(module)
    try:
        found: object = import_module(module)
    except (Exception, SystemExit) as error:  # a module may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        hint = renamed(error.name or "") if isinstance(error, ModuleNotFoundError) else None
        if hint is not None:
            reason = f"{reason}; {hint}"
        raise LoadError(f'{reason} (python -c "import {module}" shows where)') from error
    try:
        return reduce(getattr, attribute.strip().split("."), found) if attribute else found
    except AttributeError as error:
        raise LoadError(str(error)) from error


def _extend_path(module: str) -> None:
    """Add the first folder that has this module to the end of Python's path, unless the path has a module of its name.

    Raises:
        LoadError: if no folder has it.
    """
    name = module.partition(".")[0]
    loaded = sys.modules.get(name)
    if not name or (loaded is not None and folder_of(loaded) not in _MODULES.added):
        return
    files = (f"{name}.py", f"{name}/__init__.py", f"{module.replace('.', '/')}.py")
    beside = _FOLDER.get()
    folders = list(dict.fromkeys([*([] if beside is None else [beside]), Path.cwd()]))
    having = next((folder for folder in folders if any((folder / file).is_file() for file in files)), None)
    if beside is not None or having is not None:
        _MODULES.turn_to(folders[0])
    if name in sys.modules or find_spec(name) is not None:
        return
    if having is None:
        looked = " or ".join(map(str, folders))
        raise LoadError(
            f"there is no module {name!r} on Python's path or in {looked}; put {name}.py there, or install it"
        )
    _MODULES.add(having)
