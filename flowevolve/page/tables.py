"""The tables that the page is drawn from: their names, their keys, and the names and units of their columns.

Each class is a table and each field a column. They are the contract between the projection, which fills the tables from
the journal, and the views, which are written in JavaScript and read nothing else. A row replaces the earlier row with
the same key. A column may be added; none is renamed or changes its meaning.

Times are seconds since the run began, by the run's own clock. A missing value is None, which JavaScript has as null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar

from flowevolve._util.json_types import JSON

Seconds = Annotated[float, "seconds"]
Tokens = Annotated[int, "tokens"]
Dollars = Annotated[float, "dollars"]
Characters = Annotated[int, "characters"]
Value = bool | int | float | str | None | tuple[str, ...] | tuple[int, ...] | tuple[float, ...] | Mapping[str, JSON]
"""What a column can hold. JavaScript has a tuple as an array."""


@dataclass(frozen=True)
class Row:
    """The base of all rows."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, table: str = "", key: tuple[str, ...] = ()) -> None:
        cls.table, cls.key = table, key
        TABLES[table] = cls

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(each.name for each in fields(cls))

    def values(self) -> tuple[Value, ...]:
        """The values of all columns, in their order."""
        return tuple(vars(self).values())

    def identity(self) -> tuple[Value, ...]:
        """The values of the key, which no two rows of a table share."""
        mine = vars(self)
        return tuple(mine[name] for name in self.key)


TABLES: dict[str, type[Row]] = {}
"""The tables by name."""


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
    """Whether its model is simulated."""
    kind: str
    """prompt or program: what is evolved."""
    budget: Mapping[str, JSON]
    """The limits that are set, by name: seconds, rollouts, proposals, tokens, dollars, target_score."""
    used: str
    """How much of the budget is used, in words."""
    config: str
    """The configuration as TOML, and what it is a digest of below."""
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
class CallRow(Row, table="calls", key=("id",)):
    """An LLM request that has ended. Its texts are read one at a time, with the store's ``callTexts``."""

    id: int
    """From 1, in the order in which requests end."""
    role: str
    """What the model is asked as: task, reflection, …"""
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
    """The path of the item in its flow: 17 is a flow's first, 17.0 was made of it; .r at the end is for repair."""
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
    """How many changes of the pool it had missed, that matter to it, when it was taken."""
    judged: str | None
    """What the staleness policy said then: continue, discard or repair; null if it was not asked."""
    candidate: str | None
    """The candidate that the work made or, if it made none, that it is about."""


@dataclass(frozen=True)
class CandidateRow(Row, table="candidates", key=("id",)):
    """A candidate. Its texts are in the table components."""

    id: str
    place: int
    """From 0, in the order of proposals."""
    kind: str
    """seed, new (written without a parent), edit (of one parent), merge (of two or more), group (edits validated
    together), prune, repair (made again on a newer parent), copy (of a program on another island), injected, or adopted
    (from another run)."""
    operator: str
    """What made it, as the algorithm calls it."""
    parents: tuple[str, ...]
    """The ids of the candidates that it was made from."""
    edits: tuple[str, ...]
    """Of a group: the ids of the edits that it is made of."""
    item: str
    """The item in the work on which it was proposed."""
    flow: int
    stage: str | None
    """The stage that proposed it."""
    created: Seconds
    born: int
    """The pool's version that it was made from."""
    status: str
    """proposed, speculative, confirmed, rejected or revoked."""
    reason: str | None
    """Why it was rejected."""
    judged: Seconds | None
    """When it got its status; null while it is proposed."""
    score: float | None
    """The mean over the examples of its validation."""
    examples: int
    """How many examples it was validated on."""
    screen: float | None
    """The mean over the few examples that it was screened on before."""
    screen_baseline: float | None
    """Its parent's mean over the same examples."""
    held_out: float | None
    """The mean on the test examples, of the seed and the best one of a run that has ended."""
    length: Characters
    """Of all its texts together."""
    pool: str | None
    """The name of the pool that it is in, such as an island."""
    name: str
    """What its writer calls it; empty if it said nothing. The same of idea."""
    idea: str
    metrics: Mapping[str, JSON]
    """Other measured numbers, by name."""
    failure: str | None
    """Of a program: why it does not work; null if it does. This and feedback are cut to 2,000 characters."""
    feedback: str | None
    """Of a program: what its evaluation said of it."""
    sources: tuple[str, ...]
    """The ids of all earlier candidates that its texts may be made of: parents, a group's edits, the stale edit of a
    repair, those that its writer was shown, a copy's original, the playbook before; the first of them counts first."""
    vetoed: bool
    """Whether somebody has taken it out: it is no parent and not the best, whatever its status is."""


@dataclass(frozen=True)
class BatchRow(Row, table="batches", key=("item",)):
    """The examples that were selected for an item: a minibatch, or those of the lessons that a curator is given."""

    item: str
    """The item that the selection was made for; items that were made of it go by the same examples."""
    examples: tuple[str, ...]


@dataclass(frozen=True)
class ComponentRow(Row, table="components", key=("candidate", "component")):
    """A text of a candidate."""

    candidate: str
    component: str
    text: str | None
    """Null where a report has left it out, being too long; the report says so."""
    characters: Characters


@dataclass(frozen=True)
class ScoreRow(Row, table="scores", key=("candidate", "source", "example")):
    """What a candidate scored on an example."""

    candidate: str
    source: str
    """validation, or screen."""
    example: str
    value: float
    repeats: int
    """Over how many runs this is the mean."""


@dataclass(frozen=True)
class CurveRow(Row, table="curve", key=("series", "version")):
    """The best score, at each change of it and at the last event; flat between two rows. Sort the rows by seconds, as
    the last event's need not come last.
    """

    series: str
    """validation; held_out (the test examples, for the seed and the best at the end); fresh (final selection)."""
    version: int
    """The pool's version; -1 at the last event."""
    seconds: Seconds
    calls: int
    """How many requests had ended; not those answered by the response cache, nor those of held_out. The same of tokens
    and cost."""
    tokens: Tokens
    cost: Dollars
    candidate: str
    score: float
    low: float | None
    """The lower end of the score's 95 % interval, by resampling its examples."""
    high: float | None
    examples: int


@dataclass(frozen=True)
class JudgementRow(Row, table="judgements", key=("item",)):
    """What was made of an item that had missed changes of the pool."""

    item: str
    """The item, without the .r that it has while it is repaired."""
    stage: str
    """The stage that took it."""
    seconds: Seconds
    gap: int
    """How many changes it had missed, that matter to it."""
    policy: str
    """What the staleness policy said: continue, discard or repair."""
    candidate: str | None
    """The item's candidate."""
    parent: str | None
    """What it was made from."""
    head: str | None
    """The newer candidate that the repair compared it with."""
    verdict: str | None
    """The repair's: orthogonal (the patch is applied to the head), or the words of why not; null if it was none."""
    reason: str | None
    patch: Mapping[str, JSON]
    """The texts of the repaired components, by component. What they were before is in components, of candidate."""
    error: str | None
    """Why the repair's reply could not be read."""


@dataclass(frozen=True)
class GroupRow(Row, table="groups", key=("item",)):
    """Edits that were validated together."""

    item: str
    """The item that was gone on with."""
    stage: str
    seconds: Seconds
    head: str | None
    """The candidate that they were merged onto."""
    edits: tuple[str, ...]
    way: str
    """model (a model merged the texts), lines (all changes of lines fitted), each (one by one)."""
    candidate: str | None
    """What came of it; its outcome is in its row of candidates."""


@dataclass(frozen=True)
class ServerRow(Row, table="server", key=("seconds",)):
    """What the server said of itself at a look at it."""

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
    server refused for a rate limit), server (it was started, died, …), pause."""
    subject: str | None
    """The stage, endpoint or server that it is about."""
    before: float | None
    after: float | None
    reason: str
    in_flight: int | None
    """Requests in flight then; the next three were known only where admission changed."""
    waiting: int | None
    """Requests that waited in the scheduler."""
    server_running: float | None
    server_waiting: float | None


@dataclass(frozen=True)
class ActRow(Row, table="acts", key=("seq",)):
    """Something that somebody who watches the run did to it, or wanted to."""

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
    """What a comment says; otherwise what there is to know of it, such as the limits that are raised."""
    refused: str | None
    """Why it was not done; null if it was."""


@dataclass(frozen=True)
class CellRow(Row, table="cells", key=("archive", "cell")):
    """A cell of an archive, or a place on an island, and the candidate in it."""

    archive: str
    """map (the archive of a MAP-Elites, such as LEVI's), or the island: island 0, island 1, …"""
    cell: str
    """The number of the cell; on islands the id of the candidate."""
    place: tuple[float, ...]
    """Where the candidate lies, from 0 to 1 in each feature; empty on islands."""
    candidate: str
    score: float | None
    seconds: Seconds
    """When the candidate came there."""


@dataclass(frozen=True)
class BlameRow(Row, table="blame", key=("candidate", "component", "place")):
    """Where a sentence of a candidate's text came from. A report has this of the best, of what that was
    made of, and of others that were accepted.
    """

    candidate: str
    component: str
    place: int
    """The number of the sentence or line in the text, from 0."""
    start: Characters
    """Where it begins in the text, in UTF-16 units as JavaScript counts them, and where it ends."""
    end: Characters
    origin: str
    """The candidate in which it first came in."""
    how: str
    """seed, edit, or reworded (it came in as another sentence that meant much the same)."""
    similarity: float
    """Of the sentence to the one that first came in, from 0 to 1; 1 if it has stayed the same."""
    calls: tuple[int, ...]
    """The requests that wrote it: ids in calls."""
    examples: tuple[str, ...]
    """The examples that those requests were shown."""
    path: tuple[str, ...]
    """The candidates through which it came here, from the origin to this one."""


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
