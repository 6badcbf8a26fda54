"""The tables of the work that is done: requests to models, and stages' work on items."""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve.page.tables.row import Dollars, Row, Seconds, Tokens


@dataclass(frozen=True)
class CallRow(Row, table="calls", key=("id",)):
    """An LLM request that has ended. Its texts are read one at a time, with the store's ``callTexts``."""

    id: int
    """From 1, in the order in which requests end."""
    role: str
    """The role that the model is asked in: task, reflection, …"""
    model: str
    stage: str
    """The stage that asked; held_out after the end."""
    item: str
    """The item that the stage was at work on."""
    part: str | None
    """Which part of the work on the item: an example's id, a component's name, …"""
    flow: int | None
    index: int
    """How many requests the same part of the work had made before."""
    candidate: str | None
    """The candidate that the request is about: the one that is run, or the one that is to be changed."""
    template: str | None
    """The prompt's template, as NAME@VERSION."""
    slot: int
    """A lane, from 0, in which no two requests are in flight at the same time."""
    queued: Seconds
    """When the stage asked."""
    begun: Seconds
    """When the request was sent, the last time if it was sent more than once."""
    ended: Seconds
    prompt_tokens: Tokens | None
    completion_tokens: Tokens | None
    cached_tokens: Tokens | None
    """Those of the prompt that the server had in its cache."""
    cost: Dollars | None
    """Null where the model has no price."""
    attempts: int
    """How often it was sent."""
    outcome: str
    """ok, failed, cut (it ran out of tokens) or cached (answered by the response cache, and not sent)."""
    error: str | None


@dataclass(frozen=True)
class SpanRow(Row, table="spans", key=("item",)):
    """A stage's work on an item, from when the item was sent to the stage to when the work ended."""

    item: str
    """The path of the item in its flow: 17 is a flow's first, 17.0 was made from it; .r at the end is for repair."""
    flow: int
    stage: str
    source: str | None
    """The stage that sent it; null for the first of a flow."""
    state: str
    """waiting, working, consumed, discarded or held (left for a resume)."""
    reason: str
    """Why it was discarded; empty if it was not."""
    sent: Seconds
    """When it began to wait for a worker."""
    taken: Seconds | None
    """When a worker took it."""
    done: Seconds | None
    worker: int | None
    """The worker's number in its stage, from 0: a lane in which no two items are worked on at the same time."""
    head: str | None
    """The first of several items that are worked on together; null if it is alone."""
    busy: Seconds | None
    """What the work took, without the time in which it waited for others."""
    rollouts: int
    tokens: Tokens
    cost: Dollars
    gap: int
    """How many relevant changes of the pool it had missed when it was taken."""
    judged: str | None
    """What the staleness policy said then: continue, discard or repair; null if it was not asked."""
    candidate: str | None
    """The candidate that the work made or, if it made none, that it is about."""
