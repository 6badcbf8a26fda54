"""The tables of candidates: what they are made from, what they scored, and what was decided on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flowevolve._util.json_types import JSON
from flowevolve.page.tables.row import Characters, Dollars, Row, Seconds, Tokens


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
    """What its writer calls it; empty if it gave no name. idea is what the writer says of it."""
    idea: str
    metrics: Mapping[str, JSON]
    """Other measured numbers, by name."""
    failure: str | None
    """Of a program: why it does not work; null if it does. This and feedback are cut to 2,000 characters."""
    feedback: str | None
    """Of a program: what its evaluation said of it."""
    sources: tuple[str, ...]
    """The ids of all earlier candidates that its texts may be made from: parents, a group's edits, the stale edit of a
    repair, those that its writer was shown, a copy's original, the playbook before; the first of them counts first."""
    vetoed: bool
    """Whether somebody has taken it out: it is no parent and not the best, whatever its status is."""


@dataclass(frozen=True)
class BatchRow(Row, table="batches", key=("item",)):
    """The examples that were selected for an item: a minibatch, or those of the lessons that a curator is given."""

    item: str
    """The item that the selection was made for; items that were made from it use the same examples."""
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
    """How many requests had ended; not those answered by the response cache, nor those of held_out. Tokens and cost are
    counted likewise.
    """
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
    """How an item that had missed changes of the pool was judged."""

    item: str
    """The item, without the .r that it has while it is repaired."""
    stage: str
    """The stage that took it."""
    seconds: Seconds
    gap: int
    """How many relevant changes of the pool it had missed."""
    policy: str
    """What the staleness policy said: continue, discard or repair."""
    candidate: str | None
    """The item's candidate."""
    parent: str | None
    """What it was made from."""
    head: str | None
    """The newer candidate that the repair compared it with."""
    verdict: str | None
    """The repair's verdict: orthogonal (the patch is applied to the head), or a word on why it is not; null if there is
    none.
    """
    reason: str | None
    patch: Mapping[str, JSON]
    """The texts of the repaired components, by component. What they were before is in components, of candidate."""
    error: str | None
    """Why the repair's reply could not be read."""


@dataclass(frozen=True)
class GroupRow(Row, table="groups", key=("item",)):
    """Edits that were validated together."""

    item: str
    """The item that goes on for all of them."""
    stage: str
    seconds: Seconds
    head: str | None
    """The candidate that they were merged onto."""
    edits: tuple[str, ...]
    way: str
    """model (a model merged the texts), lines (all changes of lines fitted), each (one by one)."""
    candidate: str | None
    """The candidate that resulted; its outcome is in its row of candidates."""


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
    """Where a sentence of a candidate's text came from. A report has this for the best candidate, for those that it was
    made from, and for others that were accepted.
    """

    candidate: str
    component: str
    place: int
    """The number of the sentence or line in the text, from 0."""
    start: Characters
    """Where it begins in the text, in UTF-16 units as JavaScript counts them, and where it ends."""
    end: Characters
    origin: str
    """The candidate that introduced it."""
    how: str
    """seed, edit, or reworded (it was introduced as another sentence that meant much the same)."""
    similarity: float
    """The similarity of the sentence to the one that was introduced, from 0 to 1; 1 if it has stayed the same."""
    calls: tuple[int, ...]
    """The requests that wrote it: ids in calls."""
    examples: tuple[str, ...]
    """The examples that those requests were shown."""
    path: tuple[str, ...]
    """The candidates through which it came here, from the origin to this one."""
