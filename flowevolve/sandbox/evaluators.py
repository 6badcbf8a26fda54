"""The protocol for where programs run: on this machine, or on many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Protocol, Self

from flowevolve._util.json_types import JSON
from flowevolve.core.events import Log
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.inside.wire import Request
from flowevolve.sandbox.outcome import Outcome

Tell = Callable[[str], None]
"""Receives one line each when programs wait for a machine, when one has come, and when one is lost."""


def tell_nobody(line: str) -> None:
    """A `Tell` for when nobody reads the lines."""


@dataclass(frozen=True, slots=True)
class Served:
    """A program in a sandbox of its own, beside the sandbox of the evaluator that calls it."""

    settings: SandboxSettings
    request: Request


@dataclass(frozen=True, slots=True)
class Job:
    """Work that takes one slot: a program that is run once or several times."""

    settings: SandboxSettings
    request: Request
    runs: int = 1
    """How often it is run, unless it fails before; more than once only if it is pinned."""
    pinned: bool = False
    """Whether it runs on a machine of the measuring class, on a core that no other pinned job uses meanwhile."""
    served: Served | None = None
    """The program of an evaluator; then ``request`` is the evaluator's, and is run once."""


@dataclass(frozen=True, slots=True)
class TrustedCall:
    """Work that takes one slot, too: the call of a trusted function, such as a user's own.

    It runs in a process of its own without a sandbox, and is killed with what it started when its time is over. The
    function must not be written by a model; its arguments may be.
    """

    function: str
    """``package.module:function``, imported where it is called."""
    arguments: Sequence[JSON]
    timeout: float
    """How many seconds the function may take once it has been imported."""
    folder: str | None = None
    """A folder in which modules are looked for that are not on Python's path."""
    imports: Sequence[str] = ()
    """Further things to import beforehand, named in the same way."""

    pinned: ClassVar[bool] = False


class Evaluators(Protocol):
    """Runs as many jobs at a time as there are slots. A context manager; what still runs when it ends is killed."""

    @property
    def capacity(self) -> int:
        """How many slots there are now, including those in use."""
        ...

    @property
    def measured_on(self) -> str:
        """The class of machines on which pinned jobs run, so that their measurements are comparable."""
        ...

    def log_nodes(self, log: Log) -> None:
        """Log to ``log`` which nodes a cluster has, and from then on which come and go."""
        ...

    async def run(self, job: Job | TrustedCall) -> list[Outcome]:
        """Wait for a slot, run the job there, and return the outcome of each run. After a failed run, none follows.

        Each outcome is returned once, however often a machine had to be found for it. When a cancellation takes effect,
        the program and everything it started have been killed.

        Raises:
            InputError: if programs can't be started.
            BackendUnreachableError: if there has been no machine for it for a long time.
        """
        ...

    async def __aenter__(self) -> Self:
        """Begin, so that problems are noticed here.

        Raises:
            InputError: if programs can't be run there.
        """
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
