"""The candidates of a run as plain data, and the lineage of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.registry import did_you_mean
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment
from flowevolve.core.named import Named
from flowevolve.core.pool import Pool, Status
from flowevolve.journal.export import candidate_rows
from flowevolve.journal.reading import RecordedRun


@dataclass(frozen=True, slots=True)
class FoundCandidate:
    """A candidate and its outcome. ``score`` is its mean score over the ``examples`` that it was scored on. Of a
    program that came into no pool it is the mean score that it was assessed with, and ``examples`` is 0.

    ``born`` is the version of the pool that it was made from, and ``pool`` the name of the pool that it is in, or None.
    """

    id: str
    status: Status
    operator: str
    parents: tuple[str, ...]
    born: int
    pool: str | None
    score: float | None
    examples: int
    name: str
    """What its writer calls its last change; ``idea`` is its explanation. Both are empty if the writer gave none."""
    idea: str
    artifact: Artifact
    failure: str | None = None
    """Why a program can't be used; None if it works, and of anything but programs."""

    @property
    def components(self) -> Mapping[str, str]:
        """Its texts by name."""
        return self.artifact.components

    def to_json(self) -> dict[str, JSON]:
        """The fields by name, as `read_candidate` takes them."""
        return {
            "id": self.id,
            "status": self.status,
            "operator": self.operator,
            "parents": list(self.parents),
            "born": self.born,
            "pool": self.pool,
            "score": self.score,
            "examples": self.examples,
            "name": self.name,
            "idea": self.idea,
            "failure": self.failure,
            "kind": self.artifact.kind,
            "components": dict(self.artifact.components),
        }


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate on the way to another one, and the components in which it differs from the one before it."""

    candidate: FoundCandidate
    changed: tuple[str, ...]


def read_candidate(data: Mapping[str, Any]) -> FoundCandidate:
    """The candidate of which `FoundCandidate.to_json` made ``data``.

    Raises:
        KeyError, TypeError: if ``data`` is not of this form.
    """
    rest = {name: data[name] for name in FoundCandidate.__slots__ if name not in ("parents", "artifact", "failure")}
    artifact, failure = Artifact(data["components"], data["kind"]), data.get("failure")  # missing in older files
    return FoundCandidate(**rest, parents=tuple(data["parents"]), artifact=artifact, failure=failure)


def in_pool(pool: Pool) -> Iterator[FoundCandidate]:
    """The candidates that a pool keeps, oldest first. Those that were rejected before they got into it are missing."""
    for where, candidate in pool.candidates():
        named = Named.of(candidate)
        yield FoundCandidate(
            candidate.id,
            pool.status(candidate.id),
            candidate.operator,
            candidate.parents,
            candidate.born,
            where,
            candidate.mean_score if candidate.scores else None,
            len(candidate.scores),
            named.name,
            named.idea,
            candidate.artifact,
            Assessment.of(candidate).failure,
        )


def in_directory(path: Path) -> Iterator[FoundCandidate]:
    """All candidates that a run directory has a record of, oldest first.

    Raises:
        InputError: if it is no run directory.
    """
    with RecordedRun(path) as recorded:
        recorded.check()
        for row in candidate_rows(recorded):
            named = Named.from_json(row["attributes"])
            score = row["assessed_score"] if row["mean"] is None else row["mean"]
            yield read_candidate(
                {**row, "score": score, "examples": len(row["scores"]), "name": named.name, "idea": named.idea}
            )


def lineage(candidates: Sequence[FoundCandidate], candidate_id: str) -> list[Step]:
    """The path from the seed to a candidate, by the first parent of each one that is among ``candidates``.

    Raises:
        InputError: if there is no such candidate.
    """
    known = {each.id: each for each in candidates}
    if candidate_id not in known:
        raise InputError(f"lineage: there is no candidate {candidate_id!r}; {did_you_mean(candidate_id, list(known))}")
    way = [known[candidate_id]]
    while parents := [known[name] for name in way[-1].parents if name in known]:
        way.append(parents[0])
    steps = list[Step]()
    for candidate in reversed(way):
        before = steps[-1].candidate.components if steps else candidate.components
        names = dict.fromkeys([*before, *candidate.components])
        changed = tuple(name for name in names if before.get(name) != candidate.components.get(name))
        steps.append(Step(candidate, changed))
    return steps


def table_row(candidate: FoundCandidate) -> dict[str, object]:
    """A candidate as a row of a table, with a column for each text, named after its component."""
    row = candidate.to_json()
    texts = row.pop("components")
    assert isinstance(texts, dict)
    return {**row, **{name if name not in row else f"text of {name}": text for name, text in texts.items()}}
