"""What a call to an LLM is for and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from flowevolve.llm.types import ChatReply, ChatRequest, EmbedReply, EmbedRequest, Usage


@dataclass(frozen=True, slots=True)
class CallScope:
    """Which work an LLM call belongs to; with the run's seed it determines the call's sampling seed, and which model
    of an ensemble by weight answers it.
    """

    stage: str
    item: str
    candidate: str | None
    priority: int
    """Lower goes first."""
    index: int
    """Counts the calls of this item in this stage."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A finished call. Either ``reply`` or ``error`` is set. Times are the event loop's, in seconds.

    A cached call was never sent: it has no attempts, and ``started`` is ``finished``.
    """

    role: str
    scope: CallScope
    request: ChatRequest | EmbedRequest
    reply: ChatReply | EmbedReply | None
    error: str | None
    attempts: int
    queued: float
    """When the call was made."""
    started: float
    """When the last attempt was sent."""
    finished: float
    lost: Usage = field(default_factory=Usage)
    """Of a call that failed: what its attempts are paid for all the same. Where there is a reply, that says it."""

    @property
    def cached(self) -> bool:
        """Whether the reply came from the response cache."""
        return self.reply is not None and self.reply.cached


Observer = Callable[[CallRecord], None]
"""Called in the event loop before the call returns; must not block."""

Charge = Callable[[Usage, float | None], None]
"""Told what a call was paid for: its tokens, and its dollars where the price is known."""


def no_charge(usage: Usage, dollars: float | None) -> None:
    """The `Charge` of a call that counts in no budget."""


def call_seed(run_seed: int, scope: CallScope) -> int:
    """The sampling seed of a call, in 31 bits: the same for the same work, whatever else runs and on every machine."""
    key = f"{run_seed}\x1f{scope.stage}\x1f{scope.item}\x1f{scope.index}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big") >> 1
