"""How programs are written: the settings that all algorithms over programs have, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flowevolve._util.settings import Settings
from flowevolve.stages.command import CommandProposer, ProposerSettings
from flowevolve.stages.forms import Forms, FormSetting, FormWeights
from flowevolve.stages.novelty import Novelty, NoveltySettings


@dataclass(frozen=True)
class Writing:
    """What `flowevolve.stages.write_program` goes by for a whole run."""

    all_edits: bool = False
    """Whether edits are taken only if all of a reply can be made."""
    novelty: Novelty | None = None
    """What turns down programs that are too much like others; None: nothing."""
    forms: Forms = field(default_factory=Forms)
    """What is asked for."""
    proposer: CommandProposer | None = None
    """The command that writes programs; None: LLM roles do."""

    @property
    def tries(self) -> int:
        """How many programs are asked for until one is new."""
        return 1 if self.novelty is None else self.novelty.settings.tries


PLAIN = Writing()


class WritingSettings(Settings):
    """A base for the settings of an algorithm over programs."""

    form: FormSetting = "edits"
    """What is asked for: SEARCH/REPLACE ``edits`` of the parent, the ``whole`` program, or ``mixed``, now this and now
    that.
    """
    forms: FormWeights = FormWeights()
    """With ``mixed``: how often each is asked for."""
    all_edits: bool = False
    """Take edits only if all of a reply can be made; else those that can."""
    novelty: NoveltySettings = NoveltySettings()
    """Which programs are not run, as they are too much like others."""
    proposer: ProposerSettings = ProposerSettings()
    """A command that writes programs, in place of the LLM roles that do."""

    @property
    def named_roles(self) -> Sequence[str]:
        """The LLM roles that these settings call."""
        return self.novelty.roles

    def writing(self, statement: str) -> Writing:
        """How programs are written for a task with this statement.

        Raises:
            InputError: if something that is asked for is not installed.
        """
        forms = Forms(self.form, self.forms)
        return Writing(self.all_edits, self.novelty.make(statement), forms, self.proposer.make(statement))
