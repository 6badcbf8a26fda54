"""Where programs run, as a protocol: on this machine, or on many."""

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
"""Told, in one line each, that a machine for programs is awaited, that it has come then, and that one is lost."""


def tell_nobody(line: str) -> None:
    """The `Tell` for use where nobody reads that."""


@dataclass(frozen=True, slots=True)
class Served:
    """A program in a sandbox of its own, beside the one of the evaluator that asks it."""

    settings: SandboxSettings
    request: Request


@dataclass(frozen=True, slots=True)
class Job:
    """What takes up one slot at a time: a program that is run, once or several times."""

    settings: SandboxSettings
    request: Request
    runs: int = 1
    """How often it is run, until it fails; more than once only if it is pinned."""
    pinned: bool = False
    """Whether it has a core that no other pinned job of that machine uses meanwhile, on a machine of the class that
    measures.
    """
    served: Served | None = None
    """The program of an evaluator; then ``request`` is the evaluator's, and is run once."""


@dataclass(frozen=True, slots=True)
class TrustedCall:
    """What takes up one slot at a time, too: the call of a function that is trusted, as a user's own is.

    It runs in a process of its own, in no sandbox, and is killed with what it started when its time is over. Nothing
    that a model wrote may be its function; what models wrote may be among its arguments.
    """

    function: str
    """``package.module:function``, which is imported where it is called."""
    arguments: Sequence[JSON]
    timeout: float
    """Seconds that it may take once it has been imported."""
    folder: str | None = None
    """Where modules are looked for that are nowhere on Python's path."""
    imports: Sequence[str] = ()
    """What else is imported beforehand, named in the same way."""

    pinned: ClassVar[bool] = False


class Evaluators(Protocol):
    """Runs jobs, as many at a time as there are slots. A context manager; what still runs when it ends is killed."""

    @property
    def capacity(self) -> int:
        """The slots that there are now, those in use too."""
        ...

    @property
    def measured_on(self) -> str:
        """The class of machines that pinned jobs run on, so that what they measure can be compared."""
        ...

    def log_nodes(self, log: Log) -> None:
        """Write to ``log`` which nodes of a cluster there are, and from then on which come and go."""
        ...

    async def run(self, job: Job | TrustedCall) -> list[Outcome]:
        """Wait for a slot, run the job there, and return the outcome of each run, the failed one last if one failed.

        Each outcome is returned once, however often a machine had to be found for it. When a cancellation takes
        effect, the program and all it started have been killed.

        Raises:
            InputError: if programs can't be started.
            BackendUnreachableError: if there has been no machine for it for long.
        """
        ...

    async def __aenter__(self) -> Self:
        """Begin, so that what can't work fails here.

        Raises:
            InputError: if programs can't be run there.
        """
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
