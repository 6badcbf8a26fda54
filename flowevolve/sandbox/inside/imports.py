"""Refuses a program's imports of packages that it may not use, with messages that help to mend it.

This makes a program follow the rules of its problem. It is no security barrier, and none is needed: installed packages
can do no harm in the sandbox.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType


def permit(packages: Sequence[str], path: str) -> None:
    """Let imports of anything but ``packages`` and the standard library fail in the program whose file is ``path``.

    What a package imports itself is not checked. An import counts as the program's if the importing code has the
    program's file, or none.
    """
    plain = builtins.__import__
    allowed = sys.stdlib_module_names | {"__main__", *packages}
    whole = ", ".join(["the standard library", *packages])

    def guarded(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the names that __import__ has
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level == 0 and top not in allowed and (globals or {}).get("__file__") in (None, path):
            raise ModuleNotFoundError(f"{top!r} can't be imported here; a program may use only: {whole}", name=top)
        return plain(name, globals, locals, fromlist or (), level)

    builtins.__import__ = guarded
