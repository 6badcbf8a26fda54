"""How programs are written: the settings that all algorithms over programs share, and what is built from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flowevolve._util.settings import Settings
from flowevolve.programs.problem import Problem, entry_of
from flowevolve.stages.command import CommandProposer, ProposerSettings
from flowevolve.stages.forms import Forms, FormSetting, FormWeights
from flowevolve.stages.novelty import Novelty, NoveltySettings


@dataclass(frozen=True)
class Writing:
    """How `flowevolve.stages.write_program` works, for a whole run."""

    all_edits: bool = False
    """Whether edits are applied only if all edits of a reply can be."""
    novelty: Novelty | None = None
    """Rejects programs that are too similar to others; None rejects nothing."""
    forms: Forms = field(default_factory=Forms)
    """What the model is asked for."""
    proposer: CommandProposer | None = None
    """The command that writes programs; if None, LLM roles do."""
    entry: str = ""
    """The function that the task calls in programs, if it says which: what has lost it is no program."""

    @property
    def tries(self) -> int:
        """How many programs are requested at most until one is new."""
        return 1 if self.novelty is None else self.novelty.settings.tries


PLAIN = Writing()


class WritingSettings(Settings):
    """A base for the settings of an algorithm over programs."""

    form: FormSetting = "edits"
    """What the model is asked for: SEARCH/REPLACE ``edits`` of the parent, the ``whole`` program, or ``mixed`` for a
    form that is drawn each time.
    """
    forms: FormWeights = FormWeights()
    """With ``mixed``: how often each is asked for."""
    all_edits: bool = False
    """Apply edits only if all edits of a reply can be applied; if false, those that can."""
    novelty: NoveltySettings = NoveltySettings()
    """Which programs are not run because they are too similar to others."""
    proposer: ProposerSettings = ProposerSettings()
    """A command that writes programs in place of LLM roles."""

    @property
    def named_roles(self) -> Sequence[str]:
        """The LLM roles that these settings call."""
        return self.novelty.roles

    def writing(self, problem: Problem) -> Writing:
        """How programs are written for this problem.

        Raises:
            InputError: if something that the settings require is not installed.
        """
        forms, statement = Forms(self.form, self.forms), problem.statement
        novelty, proposer = self.novelty.make(statement), self.proposer.make(statement)
        return Writing(self.all_edits, novelty, forms, proposer, entry_of(problem))
