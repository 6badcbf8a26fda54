"""Errors that a user can meet. A message says where something is wrong, what, and how to mend it."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from types import TracebackType
from typing import ClassVar

_FOLDERS_OF_PACKAGES = frozenset({"site-packages", "dist-packages"})


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
        self.ended = ended
        self.what = f"raised {type(ended).__name__} in a worker thread"
        super().__init__(f"the task's own code {self.what}")


class FruitlessError(FlowevolveError):
    """Nothing came of the work of a run, from its first flow on: replies that can't be read, or that change nothing."""

    exit_code = 5


class StorageError(FlowevolveError):
    """The record of a run could not be written, because a disk is full or a file system is gone, for example."""


class EngineError(FlowevolveError):
    """The engine was used in a way that its contract forbids: an algorithm or a plug-in has a bug."""


class StageError(EngineError):
    """What an algorithm's own code raised in the work on an item, and nobody may raise there. That is the cause."""


def one_line(error: Exception) -> str:
    """The message of an error on one line, or the error's name where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def for_a_script(error: FlowevolveError) -> FlowevolveError:
    """The error as Python is to print it where a script does not catch it.

    Its message says what is wrong, so it has no frames of ours. Of the errors that caused it those are left that came
    through code of the user's, each from there on.
    """
    if isinstance(error, EngineError) and not _is_of_the_user(error):
        return error
    of_task = isinstance(error, TaskFailedError)
    kept: BaseException = error.with_traceback(None)
    for cause in _causes(error):
        if trace := _from_the_users(cause, of_task=of_task):
            kept.__cause__ = cause.with_traceback(trace)
            kept = cause
    kept.__cause__ = None  # which hides what it came up in the handling of, too
    return error


def is_bug(error: FlowevolveError) -> bool:
    """Whether something came up in a run that no code of the user's has to do with: all of it is of interest then."""
    return isinstance(error, EngineError) and _cause(error) is not None and not _is_of_the_user(error)


def _is_of_the_user(error: EngineError) -> bool:
    """Whether it was said on purpose of what the user's code did, or came through that code."""
    causes = _causes(error)
    told = bool(causes) and isinstance(causes[-1], FlowevolveError)
    return told or any(_from_the_users(each, of_task=False) for each in causes)


def said(error: Exception) -> str:
    """An error in one line: what it is, what it says and, if it came through code of the user's, where in that last."""
    own = isinstance(error, FlowevolveError)
    name, message, place = type(error).__name__, one_line(error), _last_of_the_users(error)
    told = message if own or message == name else f"{name}: {message}"
    return told if place is None else f"{told} ({Path(place.tb_frame.f_code.co_filename).name}, line {place.tb_lineno})"


def _last_of_the_users(error: BaseException) -> TracebackType | None:
    last, frame = None, error.__traceback__
    while frame is not None:
        last = last if _is_ours(frame) or _is_installed(frame) else frame
        frame = frame.tb_next
    return last


def _causes(error: BaseException) -> list[BaseException]:
    """What caused an error, and what caused that, as Python would print it."""
    found: list[BaseException] = [error]
    while (cause := _cause(found[-1])) is not None and not any(cause is each for each in found):
        found.append(cause)
    return found[1:]


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _from_the_users(error: BaseException, *, of_task: bool) -> TracebackType | None:
    """The trace from the first frame of the user's code on; None if there is none.

    The code of a task may be in an installed package, where otherwise only what we use ourselves is: without frames of
    the user's, all that comes below the last of our frames is the task's.
    """
    below = None
    frame = error.__traceback__
    while frame is not None:
        if _is_ours(frame):
            below = frame.tb_next
        elif not _is_installed(frame):
            return frame
        frame = frame.tb_next
    return below if of_task else None


def _is_ours(trace: TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0] == "flowevolve"


def _is_installed(trace: TracebackType) -> bool:
    """Whether a frame is of the standard library or of an installed package."""
    code = trace.tb_frame.f_code.co_filename
    file = Path(str(trace.tb_frame.f_globals.get("__file__", code)))  # which of compiled code is where that is
    standard = code.startswith("<frozen ") or file.is_relative_to(sysconfig.get_path("stdlib"))
    return standard or not _FOLDERS_OF_PACKAGES.isdisjoint(file.parts)
