"""Errors that users can see. A message says where something is wrong, what is wrong, and how to fix it."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from types import TracebackType
from typing import ClassVar

FROM_ITS_POOL = (
    "start a new run from its pool: flowevolve run CONFIG --from DIR, or in Python "
    'flowevolve.Config(…, start={"run": DIR})'
)
"""What to do with a run that can't be resumed."""
_FOLDERS_OF_PACKAGES = frozenset({"site-packages", "dist-packages"})


class FlowevolveError(Exception):
    """Base of all errors raised on purpose. ``exit_code`` is what the command line exits with."""

    exit_code: ClassVar[int] = 1
    of_run: object = None
    """What a run had found when it failed; `flowevolve.result_of` returns it as the `flowevolve.Result` that it is."""


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

    It is raised there instead of ``ended``, which would end the event loop at once and leave its other threads waiting
    forever.
    """

    def __init__(self, ended: KeyboardInterrupt | SystemExit) -> None:
        self.ended = ended
        self.what = f"raised {type(ended).__name__} in a worker thread"
        super().__init__(f"the task's own code {self.what}")


class FruitlessError(FlowevolveError):
    """A run's flows have produced nothing from the first one on: no reply could be read, or none changed anything."""

    exit_code = 5


class StorageError(FlowevolveError):
    """The record of a run could not be written, for example because a disk is full or a file system is gone."""


class EngineError(FlowevolveError):
    """The engine was used in a way that its contract forbids: an algorithm or a plug-in has a bug."""


class StageError(EngineError):
    """An algorithm's own code raised an error that is not allowed in the work on an item. That error is the cause."""


def policy_error(kind: str, policy: object, error: Exception) -> EngineError:
    """The error with which a run fails after the code of a policy raised ``error``, which is to be its cause."""
    return EngineError(f"{kind} policy {type(policy).__name__}: {described(error)}")


def one_line(error: Exception) -> str:
    """The message of an error on one line, or the error's name where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def reason_of(error: Exception) -> str:
    """Why a file or an address can't be used, for a message that names it: what the system says, without the number
    and the path that Python adds to it.
    """
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    return error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)


def for_a_script(error: FlowevolveError) -> FlowevolveError:
    """The error in the form in which Python should print it if a script does not catch it.

    Its message says what is wrong, so its traceback is dropped. Of the errors that caused it, only those remain that
    came through the user's code, with their tracebacks from there on. A bug of ours stays as it is.
    """
    if isinstance(error, EngineError) and not _is_of_the_user(error):
        return error
    of_task = isinstance(error, TaskFailedError)
    kept: BaseException = error.with_traceback(None)
    for cause in _causes(error):
        if trace := _from_the_users(cause, of_task=of_task):
            kept.__cause__ = cause.with_traceback(trace)
            kept = cause
    kept.__cause__ = None  # this also hides the error that was being handled when it was raised
    return error


def drop_our_frames(error: Exception) -> None:
    """Of the traceback of an exception of the user's code, keep the part in that code, if it came through any."""
    error.__traceback__ = _from_the_users(error, of_task=True) or error.__traceback__


def is_bug(error: FlowevolveError) -> bool:
    """Whether an error in a run has nothing to do with the user's code, so that its whole traceback is of interest."""
    return isinstance(error, EngineError) and _cause(error) is not None and not _is_of_the_user(error)


def _is_of_the_user(error: EngineError) -> bool:
    """Whether the error came through the user's code, or was raised on purpose because of what that code did."""
    causes = _causes(error)
    on_purpose = bool(causes) and isinstance(causes[-1], FlowevolveError)
    return on_purpose or any(_from_the_users(each, of_task=False) for each in causes)


def described(error: Exception) -> str:
    """An error in one line: its type, its message and, if it came through the user's code, the last place there."""
    own = isinstance(error, FlowevolveError)
    name, message, place = type(error).__name__, one_line(error), _last_of_the_users(error)
    text = message if own or message == name else f"{name}: {message}"
    return text if place is None else f"{text} ({Path(place.tb_frame.f_code.co_filename).name}, line {place.tb_lineno})"


def with_line(error: Exception) -> str:
    """An error's type and message, with the file and the line, as an editor opens them, of the last place in the user's
    code or, if it came through none, of where it was raised.
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = _last_of_the_users(error) or last  # a task may be in an installed package
    line = "" if place is None else f" ({place.tb_frame.f_code.co_filename}:{place.tb_lineno})"
    return f"{type(error).__name__}: {error}{line}"


def _last_of_the_users(error: BaseException) -> TracebackType | None:
    """The last place in the user's code that an error came through; None if it came through none."""
    last, frame = None, error.__traceback__
    while frame is not None:
        last = last if _is_ours(frame) or _is_installed(frame) else frame
        frame = frame.tb_next
    return last


def _causes(error: BaseException) -> list[BaseException]:
    """The chain of an error's causes, as Python would print it, without the error itself."""
    found: list[BaseException] = [error]
    while (cause := _cause(found[-1])) is not None and not any(cause is each for each in found):
        found.append(cause)
    return found[1:]


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _from_the_users(error: BaseException, *, of_task: bool) -> TracebackType | None:
    """The traceback from the first frame of the user's code on; None if there is none.

    The code of a task may be in an installed package. Other code in installed packages is what we use ourselves. So if
    ``of_task`` is set and no frame is the user's, all frames below the last of ours count as the task's.
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
    file = Path(str(trace.tb_frame.f_globals.get("__file__", code)))  # for compiled code, this is where it is installed
    standard = code.startswith("<frozen ") or file.is_relative_to(sysconfig.get_path("stdlib"))
    return standard or not _FOLDERS_OF_PACKAGES.isdisjoint(file.parts)
