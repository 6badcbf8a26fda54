"""ContextEvolve's Evolve Buffer: every program that was evaluated, with its score and its abstract (Su et al., 2026).

Programs that failed stay in it as ``rejected``. They may be shown as examples, and may be parents only with the setting
``failed_parents``. Trajectories show how programs were made from each other, and how the score changed on the way
(§4.2). A step leads from a parent to its child. Its change is the child's score minus the parent's, so above 0 is
better.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random

from flowevolve.core.assessment import works
from flowevolve.core.pool import DEFAULT_POOL, SEED, Add, Candidate, Update, Vetoed
from flowevolve.policies.drawing import by_rank, draw
from flowevolve.prompts.abstracts import Summary, Trajectory, TrajectoryKind

_FAILURES_SHOWN = 3
"""Prompts show how this many of the latest failed programs failed."""


class EvolveBuffer:
    """A function of the log. With ``described``, a program without an abstract is neither a parent nor an example.

    With ``failed_parents``, programs that failed may be parents too, ranked behind all that work.
    """

    def __init__(self, *, described: bool, failed_parents: bool = False) -> None:
        self._described = described
        self._failed_parents = failed_parents
        self._order: list[Candidate] = []
        """All that can be shown, oldest first."""
        self._versions: list[int] = []
        """The version at which each of them was added."""
        self._programs: dict[str, Candidate] = {}
        self._texts: list[Candidate] = []
        """The oldest program with each text."""
        self._known: set[str] = set()
        """The artifact ids of ``_texts``."""
        self._ranked: list[Candidate] = []
        self.failures: deque[Candidate] = deque(maxlen=_FAILURES_SHOWN)
        """The programs that failed last, oldest first."""
        self.seed: Candidate | None = None
        self._entered: list[tuple[Candidate, int]] = []
        """All programs ever added, each with the version at which it was."""
        self._vetoed: set[str] = set()

    def __len__(self) -> int:
        return len(self._order)

    @property
    def parents(self) -> Sequence[Candidate]:
        """The programs that may be parents, no two with the same text: best first, and the oldest first if scores are
        equal.
        """
        return self._ranked

    def best(self) -> Candidate | None:
        """The best program that works."""
        return self._ranked[0] if self._ranked and works(self._ranked[0]) else None

    def apply(self, update: Update) -> None:
        for change in update.changes:
            if change.pool != DEFAULT_POOL:
                continue
            match change:
                case Add(candidate=candidate):
                    self._entered.append((candidate, update.version))
                    if candidate.id not in self._vetoed:
                        self._enter(candidate, update.version)
                case Vetoed(candidate_id=name, stands=stands):
                    (self._vetoed.add if stands else self._vetoed.discard)(name)
                    self._enter_anew()
                case _:
                    pass

    def _enter_anew(self) -> None:
        for collected in (self._order, self._versions, self._programs, self._texts, self._known, self._ranked):
            collected.clear()
        self.failures.clear()
        for program, version in self._entered:
            if program.id not in self._vetoed:
                self._enter(program, version)

    def _enter(self, program: Candidate, version: int) -> None:
        if program.operator == SEED and self.seed is None:
            self.seed = program
        if not works(program):
            self.failures.append(program)
        if self._described and not Summary.of(program).abstract:
            return
        self._programs[program.id] = program
        self._order.append(program)
        self._versions.append(version)
        if program.artifact.id in self._known:
            return
        self._known.add(program.artifact.id)
        self._texts.append(program)
        if works(program) or self._failed_parents:
            insort(self._ranked, program, key=lambda each: (not works(each), -each.mean_score))

    def better_since(self, version: int, score: float) -> int:
        """How many programs that came after this version work and have a higher score."""
        newer = self._order[bisect_right(self._versions, version) :]
        return sum(works(each) and each.mean_score > score for each in newer)

    def examples(self, parent: Candidate, count: int, random: Random) -> list[Candidate]:
        """Up to ``count`` programs to choose examples from, no text twice and not the parent's: half of them the best,
        a quarter the newest, the rest drawn from all others. Those that failed are among the latter two.
        """
        chosen = {each.id: each for each in self.top(parent, (count + 1) // 2)}

        def take(programs: Iterable[Candidate], most: int) -> None:
            for each in programs:
                if len(chosen) >= most:
                    break
                if each.artifact.id != parent.artifact.id:
                    chosen.setdefault(each.id, each)

        take(reversed(self._texts), min(count, len(chosen) + count // 4))
        take(random.sample(self._texts, min(len(self._texts), 2 * count + 1)), count)
        return list(chosen.values())

    def top(self, parent: Candidate, count: int) -> list[Candidate]:
        """The best programs with another text than the parent's."""
        others = (each for each in self._ranked if works(each) and each.artifact.id != parent.artifact.id)
        return list(islice(others, count))

    def history(self, parent: Candidate, count: int) -> list[Candidate]:
        """The programs shown if no agent chooses: half of them the best, the rest the newest that work."""
        best = self.top(parent, (count + 1) // 2)
        known = {parent.artifact.id, *(each.artifact.id for each in best)}
        newest = (each for each in reversed(self._texts) if works(each) and each.artifact.id not in known)
        return [*best, *islice(newest, count - len(best))]

    def trajectories(self, ends: int, steps: int) -> list[tuple[Trajectory, float]]:
        """The trajectories that end with one of the ``ends`` newest programs, each with the change of the score over
        it.
        """
        return [found for program in self._order[-ends:] for found in trajectories_to(program, self._parent_of, steps)]

    def _parent_of(self, program: Candidate) -> Candidate | None:
        return self._programs.get(program.parents[0]) if program.parents else None


def trajectories_to(
    program: Candidate, parent_of: Callable[[Candidate], Candidate | None], steps: int
) -> Iterator[tuple[Trajectory, float]]:
    """The trajectories of 1 to ``steps`` steps that end with ``program``, each with the change of the score over it."""
    names, changes, first = [program.id], list[float | None](), program
    while len(changes) < steps and (parent := parent_of(first)) is not None:
        changes.insert(0, first.mean_score - parent.mean_score if works(first) else None)
        names.insert(0, parent.id)
        first = parent
        yield Trajectory(kind_of(changes), tuple(names), tuple(changes)), program.mean_score - first.mean_score


def kind_of(changes: Sequence[float | None]) -> TrajectoryKind:
    """Improvement if every step raised the score; decline if every step lowered it or failed; else mixed."""
    if all(change is not None and change > 0 for change in changes):
        return "improvement"
    return "decline" if all(change is None or change < 0 for change in changes) else "mixed"


def draw_trajectories(
    found: Sequence[tuple[Trajectory, float]], count: int, weights: Mapping[TrajectoryKind, float], random: Random
) -> list[Trajectory]:
    """Draw up to ``count`` trajectories one after another: first a kind by its weight, then one of that kind by rank.
    The trajectory over which the score changed most ranks first. Draws go by rank, not by the change itself, because
    scores have no common scale. No two trajectories end with the same program, as the second one would say little more.
    """
    left = sorted(found, key=lambda each: -abs(each[1]))
    drawn: list[Trajectory] = []
    while len(drawn) < count:
        kinds = [kind for kind in weights if weights[kind] > 0 and any(each.kind == kind for each, _ in left)]
        chosen = draw(kinds, [weights[kind] for kind in kinds], 1, random)
        if not chosen:
            break
        ranked = [each for each, _ in left if each.kind == chosen[0]]
        (trajectory,) = draw(ranked, by_rank(len(ranked)), 1, random)
        drawn.append(trajectory)
        left = [each for each in left if each[0].programs[-1] != trajectory.programs[-1]]
    return drawn


def in_words(candidate: Candidate) -> str:
    """A candidate's abstract and traits as prompts show them; empty if it has no abstract."""
    said = Summary.of(candidate)
    return str(said) if said.abstract else ""
