"""The logger of this package, and the work that records belong to.

Records are made with structlog, which is loaded when there is something to say.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

RUN = ContextVar[str]("structlog_run")
"""The directory of the run that is under way or, if it has none, the name of its algorithm."""
STAGE, ITEM = ContextVar[str]("structlog_stage"), ContextVar[str]("structlog_item")
CASE = ContextVar[str]("structlog_case")
"""The stage and the item that are worked on, and the case of a problem that a program is run on.

``structlog.contextvars.merge_contextvars`` adds every variable with a name of this form to a record. Its own function
for binding them would have to load structlog for every run, and take five times as long for every item.
"""


def logger() -> FilteringBoundLogger:
    """The logger that all of flowevolve writes its records to."""
    import structlog  # noqa: PLC0415 - slow to load

    found: FilteringBoundLogger = structlog.get_logger("flowevolve")
    return found


def logging_notes(event: str) -> Callable[[str], None]:
    """What logs each note that it is given as a warning, by the name of this event."""
    return lambda note: logger().warning(event, note=note)
