"""Errors that a user can meet. A message says where something is wrong, what, and how to mend it."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar


class FlowevolveError(Exception):
    """Base of all errors raised on purpose. ``exit_code`` is what the command line exits with."""

    exit_code: ClassVar[int] = 1


class InputError(FlowevolveError):
    """The config, the data or an argument is wrong."""

    exit_code = 2


class BackendUnreachableError(FlowevolveError):
    """No answer from an LLM backend within the configured patience, or no node left to run programs on."""

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


def for_a_script(error: FlowevolveError) -> FlowevolveError:
    """The error as Python is to print it where a script does not catch it: without our own frames, as its message says
    what is wrong. What caused it keeps the frames of the user's code.
    """
    if isinstance(error, EngineError):
        return error
    if error.__cause__ is not None:
        error.__cause__.with_traceback(_below_ours(error.__cause__.__traceback__))
    return error.with_traceback(None)


def _below_ours(trace: TracebackType | None) -> TracebackType | None:
    """What comes after the last of our own frames, or all of it if nothing does."""
    below, frame = trace, trace
    while frame is not None:
        if str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0] == "flowevolve":
            below = frame.tb_next
        frame = frame.tb_next
    return below or trace
