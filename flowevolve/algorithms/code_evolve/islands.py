"""Islands: populations of programs and of the prompts they were written with, that evolve side by side.

The candidates' attributes say where they belong. All state is a function of the log (CodeEvolve, arXiv 2510.14150, §4).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from flowevolve._util.errors import EngineError, InputError
from flowevolve.algorithms.code_evolve.exploration import ExplorationSettings
from flowevolve.archives.elites import Elites
from flowevolve.core.assessment import works
from flowevolve.core.pool import DEFAULT_POOL, SEED, Add, Annotate, Candidate, Update, Vetoed
from flowevolve.core.record import Attributes

PROGRAMS, PROMPTS = DEFAULT_POOL, "prompts"
"""The pools."""


class Place(Attributes):
    """Where a program or a prompt belongs."""

    island: int | None = None
    """Its island; None for a program from outside that has no island yet."""
    prompt: str | None = None
    """The prompt that a program was written with."""
    origin: str | None = None
    """The program that a migrant is a copy of."""
    home: int | None = None
    """The island that a migrant was born on."""


class Island:
    """A population of programs and prompts that evolves beside others.

    An epoch lasts ``epoch`` evaluations of programs that were born here. ``schedule`` is applied whenever one ends.
    """

    def __init__(self, index: int, elites: Elites, schedule: ExplorationSettings, *, epoch: int, prompts: int) -> None:
        self.index = index
        self.evaluations = 0
        """Evaluations of programs that were born here, without the seed's."""
        self.exploring = schedule.begin()
        self.seed: Candidate | None = None
        self.failures: dict[str, Candidate] = {}
        """The last program that failed, by the prompt it was written with."""
        self._elites = elites
        self._schedule = schedule
        self._epoch = epoch
        self._most_prompts = prompts
        self._prompts: dict[str, Candidate] = {}
        self._entered: dict[str, int] = {}
        """The artifact ids of programs that were entered, and the order in which they came."""
        self._programs: list[Candidate] = []
        """The programs that were entered, the first one with each text."""
        self._vetoed: set[str] = set()
        """Programs and prompts that somebody has taken out."""
        self._ranked: list[Candidate] = []
        self._emigrated: set[str] = set()
        self._improved = False
        self._versions: list[int] = []

    @property
    def ranked(self) -> Sequence[Candidate]:
        """The living programs, no two with the same text: best first, and the oldest first if scores are equal."""
        return self._ranked

    @property
    def best(self) -> Candidate | None:
        """The best program that works."""
        return self._ranked[0] if self._ranked and works(self._ranked[0]) else None

    @property
    def prompts(self) -> Sequence[Candidate]:
        """The living prompts: those with the best children. A prompt's mean score is that of its best child."""
        ranked = sorted(self._standing(self._prompts.values()), key=lambda prompt: -prompt.mean_score)
        return ranked[: self._most_prompts]

    @property
    def first_program(self) -> Candidate:
        """The seed, or the island's best program if somebody has vetoed the seed.

        Raises:
            LookupError: if there is no program.
        """
        return self._ranked[0] if self.seed is None or self.seed.id in self._vetoed else self.seed

    @property
    def first_prompt(self) -> Candidate:
        """The prompt that the island began with, or the oldest that nobody has vetoed."""
        return next(iter(self._standing(self._prompts.values())))

    def needs(self, candidate: Candidate) -> bool:
        """Whether this is the last program or the last prompt that the island can go on from."""
        working = [each for each in self._programs if works(each)]
        return any(
            [each.id for each in self._standing(of)] == [candidate.id] for of in (working, self._prompts.values())
        )

    def _standing(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return [each for each in candidates if each.id not in self._vetoed]

    def epoch_over(self) -> bool:
        """Whether the last evaluation ended an epoch."""
        return self.evaluations > 0 and self.evaluations % self._epoch == 0

    def missed(self, version: int) -> int:
        """How many updates of the pool after this version touched the island."""
        return len(self._versions) - bisect_right(self._versions, version)

    def emigrants(self, rate: float) -> Sequence[Candidate]:
        """The best programs that may leave: at most the share ``rate`` of all living programs, but at least one if any
        may.

        A program may leave if it works, was born here and has not left before. The island's best program stays, and so
        does the seed, which is on every island.
        """
        most = max(1, int(rate * len(self._ranked)))
        able = [
            each
            for each in self._ranked[1:]
            if works(each)
            and Place.of(each).origin is None
            and each.operator != SEED
            and each.id not in self._emigrated
        ]
        return able[:most]

    # What the log says

    def touch(self, version: int) -> None:
        if not self._versions or self._versions[-1] != version:
            self._versions.append(version)

    def emigrated(self, program_id: str) -> None:
        self._emigrated.add(program_id)

    def enter_prompt(self, prompt: Candidate) -> None:
        """Take in a new prompt, or one with another score."""
        self._prompts[prompt.id] = prompt

    def rescore_prompt(self, prompt_id: str, scores: dict[str, float]) -> None:
        self._prompts[prompt_id] = self._prompts[prompt_id].scored(scores)

    def enter(self, program: Candidate) -> None:
        """Take in a program that was evaluated here or has come from another island. A program whose text was here
        before adds nothing to the population.
        """
        before = self.best
        if program.artifact.id not in self._entered:
            self._entered[program.artifact.id] = len(self._entered)
            self._programs.append(program)
            if program.id not in self._vetoed:
                self._elites.enter(program)
            self._ranked = sorted(self._elites, key=self._rank)
        best = self.best
        self._improved |= before is not None and best is not None and best.mean_score > before.mean_score
        if program.operator == SEED:
            self.seed = program
        elif Place.of(program).origin is None:
            self._born(program)

    def veto(self, name: str, *, stands: bool) -> None:
        """Take out a program or a prompt of the island, or bring it back."""
        (self._vetoed.add if stands else self._vetoed.discard)(name)
        self._elites.clear()
        for program in self._standing(self._programs):
            self._elites.enter(program)
        self._ranked = sorted(self._elites, key=self._rank)

    def _rank(self, program: Candidate) -> tuple[bool, float, int]:
        return not works(program), -program.mean_score, self._entered[program.artifact.id]

    def _born(self, program: Candidate) -> None:
        if not works(program):
            self.failures[str(Place.of(program).prompt)] = program
        self.evaluations += 1
        if self.epoch_over():
            self.exploring = self._schedule.after(self.exploring, improved=self._improved)
            self._improved = False


class Islands:
    """All islands of a run, as the `flowevolve.core.algorithm.Archive` of its pools."""

    def __init__(self, count: int, make: Callable[[int], Island]) -> None:
        self._islands = tuple(make(index) for index in range(count))
        self._at_home: dict[str, Island] = {}
        """The island of each prompt, by the prompt's id."""

    def __len__(self) -> int:
        return len(self._islands)

    def __iter__(self) -> Iterator[Island]:
        return iter(self._islands)

    def __getitem__(self, index: int) -> Island:
        return self._islands[index]

    def of(self, candidate: Candidate) -> Island:
        """The island of a program or prompt.

        Raises:
            InputError: if there is no such island, because the pool is that of a run with more islands.
        """
        return self._at(Place.of(candidate).island)

    def _at(self, index: int | None) -> Island:
        if index is None:
            raise EngineError("a candidate that was not placed on an island has entered the pool")
        if index >= len(self):
            raise InputError(
                f"algorithm.islands is {len(self)}, but has to be at least {index + 1}, as many as the pool has"
            )
        return self._islands[index]

    def best(self) -> Candidate | None:
        found = [island.best for island in self._islands if island.best is not None]
        return max(found, key=lambda program: program.mean_score, default=None)

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, pool=pool) if pool == PROMPTS:
                    island = self._at_home[candidate.id] = self.of(candidate)
                    island.enter_prompt(candidate)
                    island.touch(update.version)
                case Add(candidate=candidate):
                    self._enter(candidate, update.version)
                case Annotate(candidate_id=name, scores=scores, pool=pool) if pool == PROMPTS and scores is not None:
                    self._at_home[name].rescore_prompt(name, dict(scores))
                case Vetoed(candidate_id=name, stands=stands):
                    for island in self._islands:
                        island.veto(name, stands=stands)
                case _:
                    pass

    def _enter(self, program: Candidate, version: int) -> None:
        island = self.of(program)
        island.enter(program)
        island.touch(version)
        place = Place.of(program)
        if place.origin is not None:
            self._at(place.home).emigrated(place.origin)
