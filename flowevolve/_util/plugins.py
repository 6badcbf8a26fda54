"""The plug-ins of installed packages, by entry-point group. Nothing is looked up or imported before it is asked for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import reduce
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from flowevolve._util.renamed import renamed


class LoadError(Exception):
    """The object that a plug-in names can't be imported. The message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point: the object it names (``package.module:attribute``), and its package with the version."""

    name: str
    target: str
    package: str

    def load(self) -> object:
        """Raises:
        LoadError: as `imported`.
        """
        return imported(self.target)


def installed(group: str) -> list[Plugin]:
    """The plug-ins of a group, by name; an entry point that is on the path twice counts once."""
    points = {
        Plugin(
            point.name, point.value, f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        )
        for point in entry_points(group=group)
    }
    return sorted(points, key=lambda plugin: (plugin.name, plugin.package, plugin.target))


_folders: list[Path] = []
"""Where modules are looked for that are not on Python's path: the folders of configurations that were read."""


def look_in(folder: Path) -> None:
    """Find modules in this folder, too, if they are nowhere on Python's path."""
    if folder not in _folders:
        _folders.append(folder)


def imported(target: str) -> object:
    """Import ``package.module:attribute``, from Python's path or else from one of the folders of `look_in` or from the
    working folder.

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
    """Add the first folder that has this module to the end of Python's path, if there is none of its name there.

    Raises:
        LoadError: if no folder has it.
    """
    name = module.partition(".")[0]
    if not name or name in sys.modules or find_spec(name) is not None:
        return
    path = module.replace(".", "/")
    folders = list(dict.fromkeys([*_folders, Path.cwd()]))
    for folder in folders:
        if any((folder / file).is_file() for file in (f"{name}.py", f"{name}/__init__.py", f"{path}.py")):
            sys.path.append(str(folder))
            invalidate_caches()
            return
    looked = " or ".join(map(str, folders))
    raise LoadError(f"there is no module {name!r} on Python's path or in {looked}; put {name}.py there, or install it")
