"""Errors that a user can meet. A message says where something is wrong, what, and how to mend it."""

from __future__ import annotations

from typing import ClassVar


class FlowevolveError(Exception):
    """Base of all errors raised on purpose. ``exit_code`` is what the command line exits with."""

    exit_code: ClassVar[int] = 1


class InputError(FlowevolveError):
    """The config, the data or an argument is wrong."""

    exit_code = 2


class BackendUnreachableError(FlowevolveError):
    """No answer from an LLM backend within the configured patience."""

    exit_code = 3


class BackendRefusedError(FlowevolveError):
    """The backend answers, but will never serve this request as configured (wrong model, bad key)."""

    exit_code = 3


class TaskFailedError(FlowevolveError):
    """The task's own code failed every time."""

    exit_code = 4


class EndedInThreadError(TaskFailedError):
    """The task's own code tried to end the process from a worker thread.

    Raised there in place of ``ended``, which would leave the event loop at once and its other threads waiting for ever.
    """

    def __init__(self, ended: KeyboardInterrupt | SystemExit) -> None:
        super().__init__(f"the task's own code raised {type(ended).__name__} in a worker thread")
        self.ended = ended


class FruitlessError(FlowevolveError):
    """Nothing came of the work of a run, from its first flow on: replies that can't be read, or that change nothing."""

    exit_code = 5


class StorageError(FlowevolveError):
    """The record of a run could not be written, because a disk is full or a file system is gone, for example."""


class EngineError(FlowevolveError):
    """The engine was used in a way that its contract forbids: an algorithm or a plug-in has a bug."""
