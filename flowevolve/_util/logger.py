"""The logger of this package. Records are made with structlog, which is loaded when there is something to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def logger() -> FilteringBoundLogger:
    """The logger that all of flowevolve writes its records to."""
    import structlog  # noqa: PLC0415 - slow to load

    found: FilteringBoundLogger = structlog.get_logger("flowevolve")
    return found
