"""LLM calls: the work that a call belongs to, and the record of a finished call."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from flowevolve._util.values import value
from flowevolve.core.item_ids import WorkPart
from flowevolve.core.model import NO_USAGE, ChatReply, ChatRequest, EmbedReply, EmbedRequest, Usage

HELD_OUT = "held_out"
"""Used instead of a stage's name in the calls that score the test split after a run has ended."""


@value
class CallScope:
    """The work that an LLM call belongs to.

    Together with the run's seed it determines the sampling seed of the call and, in an ensemble that draws models by
    weight, the model.
    """

    stage: str
    item: str
    candidate: str | None
    priority: int
    """Calls with a lower number go first."""
    index: int
    """The number of calls that this item had made before in this stage."""

    @property
    def work(self) -> WorkPart:
        """What ``item`` names: an item, or a part of the work on it."""
        return WorkPart.read(self.item)


@value
class CallRecord:
    """A finished call. Either ``reply`` or ``error`` is set. Times are the event loop's, in seconds.

    A call that the response cache answered was never sent: it has no attempts, and ``started`` equals ``finished``.
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
    failed_usage: Usage = NO_USAGE
    """Tokens billed for the attempts of a failed call. Those of a call with a reply are in ``reply.usage``."""

    @property
    def cached(self) -> bool:
        """Whether the reply came from the response cache."""
        return self.reply is not None and self.reply.cached


@value
class RoleReplies:
    """Counts of the replies to one role's chats."""

    of: int = 0
    """All of them."""
    cut: int = 0
    """Those that the token limit cut off."""
    empty: int = 0
    """Those without a text that were not cut off."""

    def and_of(self, reply: ChatReply) -> RoleReplies:
        """These counts with one more reply."""
        return RoleReplies(self.of + 1, self.cut + reply.was_cut, self.empty + reply.is_empty)


Observer = Callable[[CallRecord], None]
"""Called in the event loop before the call returns; must not block."""


class Payer:
    """Pays for calls. This base class is for calls that count against no budget."""

    def check(self) -> None:
        """Called before each attempt is sent.

        Raises:
            OverBudgetError: if there is nothing left to pay with.
        """

    def pay(self, usage: Usage, dollars: float | None) -> None:
        """Called with the tokens that the call was billed for, and with their price in dollars (None: not known)."""


NOBODY = Payer()


def call_seed(run_seed: int, scope: CallScope) -> int:
    """The sampling seed of a call (31 bits): the same for the same work, on every machine and whatever else runs."""
    key = f"{run_seed}\x1f{scope.stage}\x1f{scope.item}\x1f{scope.index}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big") >> 1
