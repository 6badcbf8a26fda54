"""Whether two machines have the same flowevolve."""

from __future__ import annotations

from importlib.metadata import version


def version_refused(there: str) -> str | None:
    """Why a node with this version of flowevolve can't be used; None if it can."""
    here = version("flowevolve")
    return (
        None
        if there == here
        else f"it has flowevolve {there}, but this machine has {here}; install the same version there"
    )
