"""Mixed forms. For each program, what to ask for is drawn at random: edits, a whole program, a cross of two programs,
or that a program that failed is mended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from pydantic import Field, model_validator

from flowevolve._util.json_types import JSON
from flowevolve._util.settings import Settings
from flowevolve.core.assessment import Assessment, works
from flowevolve.core.context import StageContext
from flowevolve.core.pool import Add, Candidate, Update
from flowevolve.core.record import Record
from flowevolve.prompts.programs import Change
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.reading.fences import fence

Kind = Literal["edits", "whole", "cross", "fix"]
FormSetting = Literal["edits", "whole", "mixed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CROSS: Change = "crossover"
FIX: Change = "fix"
REWRITES: tuple[Kind, ...] = ("edits", "whole")
"""The kinds that neither cross programs nor mend one."""
RECENT_COMMITS = 64
"""Programs to mend, and programs to cross with, are taken from the newest commits, this many of them."""
_CROSSED = 8
"""A program is crossed with one of this many of the best of these."""


class FormWeights(Settings):
    """How often each form is asked for, with ``form = "mixed"``. A form that is impossible at the time counts as 0."""

    edits: float = Field(default=0.5, ge=0)
    whole: float = Field(default=0.2, ge=0)
    cross: float = Field(default=0.15, ge=0)
    """One program made from the parent and another one."""
    fix: float = Field(default=0.15, ge=0)
    """Edits that mend a program that failed, instead of edits of the parent."""

    @model_validator(mode="after")
    def _some_weight(self) -> FormWeights:
        if not self.edits + self.whole:
            raise ValueError(
                "edits and whole are both 0, but one of them has to be above 0, as other forms are not always possible"
            )
        return self

    def of(self, kind: Kind) -> float:
        return {"edits": self.edits, "whole": self.whole, "cross": self.cross, "fix": self.fix}[kind]


class Drawn(Record, kind="form.drawn"):
    """The form that is asked for, and the program to cross with or to mend."""

    form: Kind
    program: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a model is asked to do with which programs."""

    kind: Kind
    parent: Candidate
    others: Sequence[Candidate] = ()
    drawn: bool = False

    @property
    def form(self) -> Form:
        """The form of the reply."""
        return "whole" if self.kind in ("whole", "cross") else "edits"

    @property
    def change(self) -> Change | None:
        """How the program is to be changed; None leaves it to the algorithm."""
        return {"cross": CROSS, "fix": FIX}.get(self.kind)

    @property
    def further(self) -> Mapping[str, str]:
        """Further parts of the prompt: how the program failed, unless its feedback says so."""
        if self.kind != "fix":
            return {}
        assessment = Assessment.of(self.parent)
        failure = assessment.failure or ""
        return {"failure": fence(failure) if failure and failure not in assessment.feedback else ""}

    @property
    def attributes(self) -> Mapping[str, JSON]:
        """The attributes to give to the program."""
        return {"form": self.kind} if self.drawn else {}

    def parents(self, usual: Sequence[Candidate]) -> Sequence[Candidate]:
        """The parents of the new program. ``usual`` are its parents unless it is a cross or mends a program."""
        match self.kind:
            case "fix":
                return (self.parent,)
            case "cross" if usual:
                return (*usual, *(each for each in self.others[:1] if each not in usual))
            case _:
                return usual


@dataclass(frozen=True)
class Forms:
    """How a run asks for programs."""

    form: FormSetting = "edits"
    weights: FormWeights = field(default_factory=FormWeights)

    @property
    def mends(self) -> bool:
        """Whether programs that failed may be mended, so that they have to stay in the pool."""
        return self.form == "mixed" and self.weights.fix > 0

    def assign(
        self,
        parent: Candidate,
        others: Sequence[Candidate],
        context: StageContext,
        *,
        kinds: Collection[Kind] = KINDS,
        usable: Callable[[Candidate], bool] = lambda program: True,
    ) -> Assignment:
        """Decide what is to be done with a parent. ``others`` are shown beside it, and a cross uses the first of them.

        One of ``kinds`` is drawn, but a parent that failed is always mended, if ``kinds`` allows it. Programs that are
        not shown are used only if they are ``usable``.
        """
        if self.form != "mixed":
            return Assignment(self.form, parent, others)
        drawn = context.decide(Drawn, lambda: self._draw(parent, others, kinds, usable, context))
        if drawn.program is None or drawn.form not in ("cross", "fix"):
            return Assignment(drawn.form, parent, others, drawn=True)
        program = context.pool[drawn.program]
        if drawn.form == "fix":
            return Assignment("fix", program, drawn=True)
        return Assignment("cross", parent, (program, *(each for each in others if each.id != program.id)), drawn=True)

    def _draw(
        self,
        parent: Candidate,
        others: Sequence[Candidate],
        kinds: Collection[Kind],
        usable: Callable[[Candidate], bool],
        context: StageContext,
    ) -> Drawn:
        if "fix" in kinds and not works(parent):
            return Drawn(form="fix", program=parent.id)
        pool = context.pool
        recent = pool.updates_between(max(0, pool.version - RECENT_COMMITS))
        added = (each for each in _added(recent, parent) if usable(each) and not pool.vetoed(each.id))
        mates = list(others[:1]) or _best(added)
        broken = [each for each in _failed(recent, parent) if usable(each) and not pool.vetoed(each.id)]
        can = {"edits": True, "whole": True, "cross": bool(mates), "fix": bool(broken)}
        asked = [kind for kind in KINDS if kind in kinds and can[kind]]
        (kind,) = context.random.choices(asked, [self.weights.of(each) for each in asked])
        if kind == "cross":
            return Drawn(form=kind, program=context.random.choice(mates).id)
        return Drawn(form=kind, program=context.random.choice(broken).id if kind == "fix" else None)


def _added(updates: Sequence[Update], parent: Candidate) -> list[Candidate]:
    """The working programs that entered a pool and whose text is not the parent's."""
    added = (each for update in updates for each in update.added())
    unlike = [each for each in added if each.artifact.keys() == parent.artifact.keys()]
    return [each for each in unlike if each.artifact != parent.artifact and works(each)]


def _best(programs: Iterable[Candidate]) -> list[Candidate]:
    return sorted(programs, key=lambda each: -each.mean_score)[:_CROSSED]


def _failed(updates: Sequence[Update], parent: Candidate) -> list[Candidate]:
    """The programs that failed and that nobody has tried to mend."""
    added = [change.candidate for update in updates for change in update.changes if isinstance(change, Add)]
    tried = {name for each in added for name in each.parents}
    failed = [each for each in added if not works(each) and each.artifact.keys() == parent.artifact.keys()]
    return [each for each in failed if each.id not in tried]
