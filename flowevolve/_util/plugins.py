"""The plug-ins of installed packages, by entry-point group. Nothing is looked up or imported before it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from importlib.metadata import entry_points

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


def imported(target: str) -> object:
    """Import ``package.module:attribute``.

    Raises:
        LoadError: whatever goes wrong in the import, because a broken plug-in must not end what works without it.
    """
    module, _, attribute = target.partition(":")
    module = module.strip()
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
