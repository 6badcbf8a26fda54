"""Logs: what somebody who runs this should notice, as structured records on standard error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

from flowevolve._util.logger import logger
from flowevolve._util.outputs import LastingOutput
from flowevolve.core.events import Event

_LEVELS: Mapping[str, int] = {
    "run.drain_ended": logging.WARNING,
    "server.died": logging.WARNING,
    "server.gave_up": logging.WARNING,
    "memory.unavailable": logging.WARNING,
    "usage.estimated": logging.WARNING,
    "run.fruitless": logging.INFO,  # the progress display says so
    "run.failed": logging.INFO,  # whoever started the run reports it
    "rollout.failed": logging.INFO,
    "reply.unparsable": logging.INFO,
    "reply.partly_read": logging.INFO,
    "reply.missing": logging.INFO,
    "repair.unparsable": logging.INFO,
    "endpoint.ejected": logging.WARNING,
    "endpoint.returned": logging.INFO,
    "limits.refused": logging.INFO,
    "admission.changed": logging.INFO,
    "allocation.changed": logging.INFO,
    "flows.limited": logging.INFO,
    "run.start": logging.INFO,
    "run.stopping": logging.INFO,
    "run.stop": logging.INFO,
}
"""The levels of the events that are logged. All other events are in the journal only."""


def configure_logs(level: int = logging.WARNING, *, as_json: bool = False) -> None:
    """Send records of at least this level to standard error, for people or as JSON lines.

    Records made during a run have its name, and the stage and the item that are being worked on, if there are any.
    """
    import structlog  # noqa: PLC0415 - slow to load

    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(LastingOutput(sys.stderr)),  # type: ignore[arg-type]  # it needs no more
    )


def log_event(event: Event) -> None:
    """Log an event, if it is one of those that are logged. This is an event sink."""
    level = _LEVELS.get(event.kind)
    if level is not None:
        logger().log(level, event.kind, run_seconds=round(event.time, 3), **event.data)


def level_name(kind: str) -> str:
    """The level of the events of a kind: warning, info, or debug if they are in the journal only."""
    return logging.getLevelName(_LEVELS.get(kind, logging.DEBUG)).lower()
