"""A vetoed candidate is to every archive as if it had never been there, until the veto is taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.algorithms.ace.commit import Progress
from flowevolve.algorithms.baselines.algorithm import Best as BestProgram
from flowevolve.algorithms.code_evolve.exploration import ExplorationSettings
from flowevolve.algorithms.code_evolve.islands import Island, Islands
from flowevolve.algorithms.context_evolve.evolve_buffer import EvolveBuffer
from flowevolve.algorithms.cse.select import Population
from flowevolve.algorithms.levi.map_elites import MapElites
from flowevolve.algorithms.meta_harness.frontier import Frontier
from flowevolve.archives.descriptors import Space
from flowevolve.archives.elites import FITNESS, Best, Cells, Mapped
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Candidate, Change, Move, Update, Vetoed


class AnArchive(Protocol):
    def apply(self, update: Update) -> None: ...


def islands(elites: Callable[[], Best | Mapped]) -> Islands:
    schedule = ExplorationSettings()
    return Islands(1, lambda index: Island(index, elites(), schedule, epoch=3, prompts=2))


def map_elites() -> MapElites:
    archive = MapElites()
    space = Space.from_json({"scales": {"size": [5.0, 2.0]}, "centroids": [[0.2], [0.5], [0.8]]})
    archive.apply(Update(0, (space.note(),), "0", 0.0))
    return archive


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [each.id for each in candidates]


def best_of(best: Candidate | None) -> list[str]:
    return [] if best is None else [best.id]


def looked_at(archive: AnArchive) -> object:
    """What an algorithm selects by."""
    match archive:
        case ParetoArchive():
            return ids(archive.candidates), dict(archive.weights()), ids(archive.confirmed), archive.standing()
        case Progress():
            return best_of(archive.best)
        case BestProgram():
            return best_of(archive.candidate)
        case Islands():
            return ids(archive[0].ranked), best_of(archive.best())
        case EvolveBuffer():
            return ids(archive.parents), ids(list(archive.failures)), len(archive)
        case Population():
            return ids(archive.candidates), best_of(archive.best())
        case MapElites():
            return ids(archive.elites), ids(archive.candidates), best_of(archive.best())
        case Frontier():
            return ids(archive.front()), best_of(archive.best())
        case _:
            raise AssertionError(archive)


ARCHIVES: dict[str, Callable[[], AnArchive]] = {
    "pareto": ParetoArchive,
    "ace": lambda: Progress("offline"),
    "ace online": lambda: Progress("online"),
    "best": BestProgram,
    "islands": lambda: islands(lambda: Best(3)),
    "mapped islands": lambda: islands(lambda: Mapped(Cells("grid", 1, 4), [FITNESS], {})),
    "buffer": lambda: EvolveBuffer(described=False),
    "population": Population,
    "map elites": map_elites,
    "frontier": Frontier,
}


def candidate(number: int, rng: Random) -> Candidate:
    scores = {name: rng.choice([0.0, 0.5, 1.0]) for name in "abc"}
    attributes: dict[str, JSON] = {
        "island": 0,
        "descriptor": {"size": rng.randrange(10)},
        "accuracy": {"rows": sum(scores.values()) / 3},
        "context_chars": float(rng.randrange(5)),
    }
    made = Candidate(f"c{number}", Artifact({"p": f"{number}"}), attributes=attributes)
    return made.scored(scores)


def changes(rng: Random, count: int = 12) -> list[list[Change]]:
    """Commits of a candidate each; some are speculative first."""
    commits: list[list[Change]] = []
    for number in range(count):
        made = candidate(number, rng)
        commits.append([Add(made)])
    return commits


def applied(archive: AnArchive, commits: Sequence[Sequence[Change]]) -> object:
    for version, commit in enumerate(commits, 1):
        archive.apply(Update(version, tuple(commit), "1", float(version)))
    return looked_at(archive)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_as_if_a_vetoed_candidate_had_never_been_there(name: str, seed: int) -> None:
    rng, make = Random(seed), ARCHIVES[name]
    commits = changes(rng)
    if name == "best":  # it has those alone that were the best as they came
        commits = sorted(commits, key=lambda commit: _mean(commit[0]))
    banned = rng.choice(commits)
    named = banned[0]
    assert isinstance(named, Add)
    veto, back = Vetoed(named.candidate.id), Vetoed(named.candidate.id, stands=False)
    place = rng.randrange(len(commits) + 1)
    kept = [[] if commit is banned else commit for commit in commits]
    without = applied(make(), [*kept, []])
    assert applied(make(), [*commits[:place], [veto], *commits[place:]]) == without
    assert applied(make(), [*commits, [veto]]) == without
    assert applied(make(), [*commits, [veto], [back]]) == applied(make(), commits)


def _mean(change: Change) -> float:
    return change.candidate.mean_score if isinstance(change, Add) else 0.0


def test_a_speculative_candidate_can_be_vetoed_as_well() -> None:
    archive = ParetoArchive()
    rng = Random(1)
    seed, early = candidate(0, rng), candidate(1, rng).scored({"a": 1.0, "b": 1.0, "c": 1.0})
    applied(archive, [[Add(seed)], [Add(early, "speculative")]])
    archive.apply(Update(3, (Vetoed("c1"),), "-1", 3.0))
    assert ids(archive.candidates) == ["c0"]
    assert dict(archive.weights()) == {"c0": 3}
    archive.apply(Update(4, (Move("c1", "confirmed", early.scores),), "1", 4.0))
    assert ids(archive.candidates) == ["c0"]
    assert best_of(archive.best()) == ["c0"]
    archive.apply(Update(5, (Vetoed("c1", stands=False),), "-1", 5.0))
    assert best_of(archive.best()) == ["c1"]
