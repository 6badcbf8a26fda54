"""Fair shares of a server among runs, by the tokens that it has worked on for each.

This is the virtual token counter of Sheng et al., "Fairness in Serving Large Language Models" (OSDI 2024), with its
weights of prompt and answer tokens and its prediction of answers that are still being written. The next request is one
of the run that has had the least in relation to its share. When a run with nothing waiting sends a request, its counter
is raised to the lowest one among the runs that wait. So it is not compensated for time in which it asked for nothing,
and the other runs don't pay for having used a server that was free.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from flowevolve.core.model import LLMError, UnreachableError, Usage
from flowevolve.llm.scheduling.request_queue import GroupFacts, Key, QueuedRequest
from flowevolve.llm.transports.sender import Sender

PROMPT_WEIGHT, ANSWER_WEIGHT = 1.0, 2.0
"""The cost of a token, as in the paper. Prompt tokens that the server had cached cost nothing."""
LEARNED = 0.1
"""The weight of the latest request in what the next one is expected to cost."""
MOST_IDLE_RUNS = 1000
"""Once more runs than this have no open request, half of them are forgotten."""


def cost(usage: Usage) -> float:
    """What a request costs the server, in units of one prompt token."""
    return PROMPT_WEIGHT * (usage.prompt_tokens - usage.cached_tokens) + ANSWER_WEIGHT * usage.completion_tokens


@dataclass(slots=True, eq=False)
class RunAccount:
    """A run, and what the server has done for it."""

    sender: Sender
    spent: float = 0.0
    """Its counter: the cost of its requests divided by its share, and what was added when it had nothing waiting."""
    expected_cost: float | None = None
    """The expected cost of its next request; None until one was answered."""
    open: int = 0
    """Requests that wait, here or for a rate limit, or are in flight."""
    in_flight: int = 0
    requests: int = 0
    """Requests that the server has answered."""
    usage: Usage = field(default_factory=Usage)
    """The tokens of the answered requests."""

    @property
    def waiting(self) -> int:
        return self.open - self.in_flight


class FairShares:
    """Orders requests by run (`flowevolve.llm.scheduling.request_queue.Order`); the group of a request is its run.

    Runs with a lower priority go first. Among equals, the run that has had the least in relation to its share is next.
    """

    fair_every = 0

    def __init__(self) -> None:
        self._accounts: dict[str, RunAccount] = {}
        self._expected_cost: float | None = None
        """The expected cost for runs without an answer so far; None before the first answer to any run."""

    def accounts(self) -> list[RunAccount]:
        """The accounts of all runs; the run with the latest request is last."""
        return list(self._accounts.values())

    @contextmanager
    def opened(self, sender: Sender) -> Iterator[RunAccount]:
        """Count a request of a run as open until the block ends."""
        account = self._accounts.pop(sender.run, None)
        if account is None:
            self._forget_idle()
            account = RunAccount(sender)
        self._accounts[sender.run] = account
        account.sender = sender
        if not account.waiting:
            lacks = self._least(sender.priority) - self._had(account, account.in_flight)
            account.spent += max(0.0, lacks)
        account.open += 1
        try:
            yield account
        finally:
            account.open -= 1

    @contextmanager
    def at_work(self, account: RunAccount) -> Iterator[None]:
        """Count a request as in flight until the block ends. If it fails or is cancelled, the run is charged: for the
        tokens that the error reports or, if there was no answer, for the expected cost.
        """
        account.in_flight += 1
        try:
            yield
        except (UnreachableError, anyio.get_cancelled_exc_class()):
            self._charge(account, self._expected(account))
            raise
        except LLMError as error:
            self._charge(account, cost(error.usage))
            raise
        finally:
            account.in_flight -= 1

    def answered(self, account: RunAccount, usage: Usage) -> None:
        """Charge a run for a request that is answered."""
        spent = cost(usage)
        self._charge(account, spent)
        account.expected_cost = _learned(account.expected_cost, spent)
        self._expected_cost = _learned(self._expected_cost, spent)
        account.usage += usage
        account.requests += 1

    def group_key(self, facts: GroupFacts) -> Key:
        account = self._accounts[facts.name]
        # A request that has just got its slot is first counted only by the queue. Requests that wait for a rate limit
        # are in another queue, which does not count those at the server.
        in_flight = max(facts.in_flight, account.in_flight)
        return (account.sender.priority, self._had(account, in_flight), facts.arrival)

    def request_key(self, request: QueuedRequest, arrival: int) -> Key:
        return (arrival,)

    def _had(self, account: RunAccount, in_flight: int) -> float:
        """What a run has had in relation to its share, including the expected cost of its requests in flight."""
        return account.spent + in_flight * self._expected(account) / account.sender.share

    def _expected(self, account: RunAccount) -> float:
        """The expected cost of a run's next request. Before the first answer to any run, each request counts as 1."""
        return account.expected_cost or self._expected_cost or 1.0

    def _charge(self, account: RunAccount, spent: float) -> None:
        account.spent += spent / account.sender.share

    def _least(self, priority: int) -> float:
        """The lowest counter among the runs with this priority whose requests wait.

        If none waits, the server has been free, and it does not matter who has used how much of it: a run then begins
        at the highest counter.
        """
        equals = [account for account in self._accounts.values() if account.sender.priority == priority]
        had = {account.sender.run: self._had(account, account.in_flight) for account in equals}
        waiting = [had[account.sender.run] for account in equals if account.waiting]
        return min(waiting) if waiting else max(had.values(), default=0.0)

    def _forget_idle(self) -> None:
        """If too many runs have nothing open, forget the half of them whose latest requests are the longest ago."""
        idle = [name for name, account in self._accounts.items() if not account.open]
        if len(idle) > MOST_IDLE_RUNS:
            for name in idle[: len(idle) // 2]:
                del self._accounts[name]


def _learned(expected: float | None, latest: float) -> float:
    return latest if expected is None else expected + LEARNED * (latest - expected)
