"""The logger of this package, and the work that log records belong to.

Records are written with structlog, which is loaded when there is something to log.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

RUN = ContextVar[str]("structlog_run")
"""The directory of the run that is under way or, if it has none, the name of its algorithm."""
STAGE, ITEM = ContextVar[str]("structlog_stage"), ContextVar[str]("structlog_item")
CASE = ContextVar[str]("structlog_case")
"""The stage and the item that are worked on, and the case of a problem that a program is run on.

``structlog.contextvars.merge_contextvars`` adds every variable with a name of this form to a record. structlog's own
function for binding them would require loading it in every run, and take five times as long for every item.
"""


class WorkedOn:
    """Inside a ``with`` block, records name this stage and this item.

    It is a class because every item needs one, and a generator takes twice as long.
    """

    __slots__ = ("_in_stage", "_item", "_on_item", "_stage")

    def __init__(self, stage: str, item: str) -> None:
        self._stage, self._item = stage, item

    def __enter__(self) -> None:
        self._in_stage, self._on_item = STAGE.set(self._stage), ITEM.set(self._item)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        STAGE.reset(self._in_stage)
        ITEM.reset(self._on_item)


def logger() -> FilteringBoundLogger:
    """The logger that all of flowevolve writes its records to."""
    import structlog  # noqa: PLC0415 - slow to load

    found: FilteringBoundLogger = structlog.get_logger("flowevolve")
    return found


def logging_notes(event: str) -> Callable[[str], None]:
    """A function that logs each note that it gets as a warning with this event name."""
    return lambda note: logger().warning(event, note=note)
