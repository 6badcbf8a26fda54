"""The tables of the run as a whole: what it is, its stages, its servers, what was decided on them, and its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flowevolve._util.json_types import JSON
from flowevolve.page.tables.row import Row, Seconds


@dataclass(frozen=True)
class RunRow(Row, table="runs", key=("name",)):
    """The run itself: one row."""

    name: str
    """What the page calls it: the name of its directory."""
    state: str
    """running, finished, interrupted, failed or not begun."""
    paused: bool
    """Whether somebody has paused it."""
    stop_reason: str | None
    """Why it stopped, such as seconds; null while it goes on, and of a run that was killed."""
    error: str | None
    """What made it fail; on a live page also why it can't be read any more."""
    seconds: Seconds
    """How long it has lasted up to now."""
    directory: str
    """The run directory, as it was named to whoever made the page."""
    branched_from: str | None
    """Of a run that was branched off another one: the candidate, the run and its pool's version, in words."""
    algorithm: str
    mode: str
    """stream or sync."""
    task: str
    backend: str
    simulated: bool
    """Whether its models are simulated; false as long as none has been called."""
    kind: str
    """prompt or program: what is evolved."""
    budget: Mapping[str, JSON]
    """The limits that are set, by name: seconds, rollouts, proposals, tokens, dollars, target_score."""
    used: str
    """How much of the budget is used, in words."""
    config: str
    """The configuration as TOML; config_digest is its digest."""
    config_digest: str
    version: int
    """The pool's version, which grows by one with each change."""
    proposals: int
    """Candidates that were proposed, the seed not among them."""
    best: str | None
    """The id of the best candidate."""
    best_score: float | None
    """Its mean score on the validation examples."""
    low: float | None
    """The lower end of the 95 % interval of the best score; null while the run goes on."""
    high: float | None
    seed_score: float | None
    examples: int | None
    """How many validation examples there are."""
    score_trust: str | None
    """Of programs: whether they could forge their scores, in words."""


@dataclass(frozen=True)
class StageRow(Row, table="stages", key=("stage",)):
    """A stage of the algorithm's graph, in the order of the graph; init and finish are not among them."""

    stage: str
    place: int
    """From 0."""
    workers: int | None
    """How many workers it has now; null where the journal does not say it."""


@dataclass(frozen=True)
class ServerRow(Row, table="server", key=("seconds",)):
    """The load that the server reported when it was looked at."""

    seconds: Seconds
    running: float
    """Requests that it works on."""
    waiting: float
    """Requests that wait in it."""
    cache_usage: float | None
    """The share of its key-value cache that is used, from 0 to 1."""
    prefix_hit_rate: float | None
    """The share of prompt tokens that it found in its cache, since it was started."""


@dataclass(frozen=True)
class MoveRow(Row, table="moves", key=("seq",)):
    """A decision on how much of something there is, and why."""

    seq: int
    """The event's number."""
    seconds: Seconds
    kind: str
    """workers (of a stage), requests (in flight), flows (open), width (of a lockstep step), endpoint, limits (a
    server refused for a rate limit), server (it was started, died, …), node (of a cluster), pause."""
    subject: str | None
    """The stage, endpoint or server that it is about."""
    before: float | None
    after: float | None
    reason: str
    in_flight: int | None
    """Requests in flight then. This and the next three are known only if admission changed."""
    waiting: int | None
    """Requests that waited in the scheduler."""
    server_running: float | None
    server_waiting: float | None


@dataclass(frozen=True)
class ActRow(Row, table="acts", key=("seq",)):
    """Something that a user who watches the run did to it, or wanted to do."""

    seq: int
    """The event's number."""
    time: Seconds
    by: str
    """Who did it, as they call themselves."""
    act: str
    """pause, unpause, stop, raise_budget, inject, comment, veto or approve."""
    about: str | None
    """The id of the candidate or example that it is about; of inject the candidate that was edited."""
    is_example: bool
    """Whether it is about an example."""
    text: str
    """The text of a comment; of other acts the details, such as the limits that are raised."""
    refused: str | None
    """Why it was not done; null if it was."""


@dataclass(frozen=True)
class LogRow(Row, table="log", key=("seq",)):
    """An event of the journal."""

    seq: int
    seconds: Seconds
    kind: str
    """As in docs/reference/events.md."""
    stage: str | None
    item: str | None
    candidate: str | None
    said: str
    """Its other fields as JSON, cut to 600 characters."""
    level: str
    """warning or info, as in the logs; debug where the event is in the journal only."""
