"""What is known of a bench: what it asks, how it is run, and what its figures depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench._lib.text import Content, Verdicts

SIMULATED, SMALL, NONE = "simulated", "SmolLM2-135M", "none"


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench, whose result is ``NAME.json``.

    ``section`` makes Markdown of the result, beginning with a ``#`` heading. ``answer`` makes one figure with its
    spread, worded to follow the question. ``model`` says which model answered. ``command`` is what to call after
    ``python -m bench.``, if that is not the name. ``measures`` are the folders and files that decide the figures, as
    git pathspecs; once they change, the result is old. ``quick`` has the arguments of the bench's short form; it is
    None if the bench needs a server of the reader's. ``full`` has the arguments that the published result was made
    with. ``environment`` is the folder of the environment that the bench runs in, if it needs more than ours. ``goals``
    says which goals it has and whether they are met. ``reads`` are files with rows of public data sets, in
    `bench._lib.paths.DATA`, without which it can't be run.
    """

    name: str
    question: str
    answer: Callable[[Content], str]
    section: Callable[[Content], str]
    model: str = SIMULATED
    command: str | None = None
    measures: Sequence[str] = ()
    quick: str | None = "--quick"
    full: str = ""
    environment: str | None = None
    goals: Callable[[Content], Verdicts] = lambda content: {}
    reads: Sequence[str] = ()

    def missed(self, content: Content) -> Sequence[str]:
        """What the goals that a result misses are about."""
        return [about for about, met in self.goals(content).items() if not met]


def count_goals(found: Iterable[tuple[Bench, Content]]) -> tuple[int, int]:
    """How many goals are missed, and how many there are."""
    counts = [(len(bench.missed(content)), len(bench.goals(content))) for bench, content in found]
    return sum(missed for missed, _ in counts), sum(goals for _, goals in counts)
