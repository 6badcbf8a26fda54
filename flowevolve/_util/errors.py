"""Errors a user can meet. Each says where, what, and how to mend it, and carries the exit code of design §7."""

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


class StorageError(FlowevolveError):
    """What a run did could not be written: a full disk, a file system that went away."""


class EngineError(FlowevolveError):
    """The engine was used in a way its contract forbids. A bug in an algorithm or a plug-in."""
