"""What is known of a bench: what it asks, how it is run, and what its figures depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench._lib.text import Content, Verdicts

SIMULATED, SMALL, NONE = "simulated", "SmolLM2-135M", "none"


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench: its result is ``NAME.json``. ``section`` makes Markdown of that, from a ``#`` heading on; ``answer`` is
    one figure with its spread, said so that it follows the question. ``model`` is which one answered, and ``command``
    what to call after ``python -m bench.``, where that is not the name. ``measures`` are the folders and files that
    decide the figures, as git's pathspecs: once they change, the result is old. ``quick`` are the arguments of a short
    form, if there is one; None where a server of the reader's is needed. ``full`` are those that the published result
    was made with. ``environment`` is the folder of the one that
    it runs in, where it needs more than ours. ``goals`` says which goals it has and whether they are met.
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

    def missed(self, content: Content) -> Sequence[str]:
        """What the goals are about that a result misses."""
        return [about for about, met in self.goals(content).items() if not met]
