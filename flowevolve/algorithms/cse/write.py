"""CSE's control over what a child changes: an agent takes its parents apart, and their good parts are frozen.

This module also writes programs to plans, mutations and crossovers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from flowevolve._util.json_types import JSON
from flowevolve.algorithms.cse.payloads import Brief, Planned
from flowevolve.algorithms.cse.remember import AGENT
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import Candidate
from flowevolve.core.templates import Prompt
from flowevolve.programs.parts import Slot, frozen_parts, parts_of, restore, unchanged
from flowevolve.prompts.plans import implement_prompt
from flowevolve.prompts.programs import program_prompt
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.slots import crossover_prompt, diagnose_prompt, mutation_prompt, read_slots
from flowevolve.stages import Writing, Written, as_shown, try_asking, write_program
from flowevolve.stages.forms import REWRITES, Kind

CODE = "code"
"""The role that plans and writes programs."""
IMPLEMENT = "implement"
"""The operator of programs that were written to a plan."""
RESTORED = "slots.restored"


@dataclass(frozen=True)
class Diagnose:
    """Has an agent take the parents apart, with one call for each; a program of a single part needs none. If a reply
    can't be read, the step goes on, and nothing of that parent is frozen.
    """

    statement: str

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        brief = item.expect(Brief)
        best = context.pool[brief.best]
        slots = [await self._taken_apart(context.pool[name], best, context) for name in brief.parents]
        yield Emit(replace(brief, slots=tuple(slots)))

    async def _taken_apart(self, program: Candidate, best: Candidate, context: StageContext) -> tuple[Slot, ...]:
        parts = parts_of(program.artifact)
        if len(parts) < 2:
            return ()
        other = None if best.id == program.id else as_shown(best)
        prompt = diagnose_prompt(context.templates, self.statement, as_shown(program), parts, other)
        read = partial(read_slots, parts=parts)
        return await try_asking(context, AGENT, prompt, read, agent="diagnose", candidate=program.id) or ()


@dataclass(frozen=True, slots=True)
class Frozen:
    """Parts of a program that a child has to keep unchanged."""

    program: Mapping[str, str]
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutation:
    """What a mutation is to keep and to improve, and why, a line each."""

    keep: tuple[str, ...]
    improve: tuple[str, ...]
    why: tuple[str, ...]


def mutation(program: Mapping[str, str], slots: Sequence[Slot]) -> Mutation:
    """What a mutation is to keep and to improve, by the slots.

    Parts that are only in slots to keep are frozen. If no part is to be improved, nothing is frozen.
    """
    improve = tuple(dict.fromkeys(part for slot in slots if not slot.keep for part in slot.parts))
    if not improve:
        return Mutation((), parts_of(program), ())
    return Mutation(frozen_parts(slots), improve, _reasons(slot for slot in slots if not slot.keep))


@dataclass(frozen=True, slots=True)
class Crossing:
    """Which parts a child takes from the first program and which from the second, and why, a line each."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    why: tuple[str, ...]


def crossing(first: Mapping[str, str], one: Sequence[Slot], other: Sequence[Slot]) -> Crossing:
    """Take the good parts of the first program, and those of the second in slots where the first is weak.

    If that would only give the first program again, nothing is frozen.
    """
    weak = {slot.name for slot in one if not slot.keep}
    ours = frozen_parts(one)
    there = {part for slot in other if slot.name in weak for part in slot.parts}
    theirs = tuple(part for part in frozen_parts(other) if part in there and part not in ours)
    if not theirs and set(ours) >= set(parts_of(first)):
        return Crossing((), (), ())
    better = [slot for slot in other if slot.keep and slot.name in weak]
    return Crossing(ours, theirs, (*_reasons(one), *_reasons(better, "the other, ")))


def keep_to(frozen: Sequence[Frozen], context: StageContext, program: Artifact) -> Artifact:
    """Put frozen parts that a child has changed back into it; an event says which parts.

    Raises:
        Discard: if that can't be done.
    """
    changed: list[str] = []
    child: Mapping[str, str] = program
    for each in frozen:
        changed += [part for part in each.parts if not unchanged(each.program, child, [part])]
        restored = restore(each.program, child, each.parts)
        if restored is None:
            raise Discard("frozen part changed")
        child = restored
    if not all(unchanged(each.program, child, each.parts) for each in frozen):
        raise Discard("frozen part changed")
    if changed:
        context.log(RESTORED, parts=[*changed])
    return program.replace(**child)


def _reasons(slots: Iterable[Slot], whose: str = "") -> tuple[str, ...]:
    return tuple(
        f"{whose}{slot.name} ({', '.join(slot.parts)}), {'good' if slot.keep else 'weak'}: {slot.why}"
        for slot in slots
        if slot.why
    )


@dataclass(frozen=True)
class Write:
    """Writes programs to plans, and children. A child that changes frozen parts is mended, or else discarded."""

    statement: str
    writing: Writing

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Planned):
            program = await self._to_plan(item.payload, item.version, context)
        else:
            program = await self._child(item.expect(Brief), item.version, context)
        yield Emit(Written(program), derives=program.parents)

    async def _to_plan(self, planned: Planned, born: int, context: StageContext) -> Candidate:
        return await write_program(
            planned.form,
            implement_prompt(
                context.templates, self.statement, planned.form.artifact, planned.plan, advice=planned.recalled
            ),
            "whole",
            context,
            role=CODE,
            operator=IMPLEMENT,
            parents=(),
            born=born,
            attributes={"plan": planned.plan},
            writing=self.writing,
        )

    async def _child(self, brief: Brief, born: int, context: StageContext) -> Candidate:
        parents = [context.pool[name] for name in brief.parents]
        kinds: Sequence[Kind] = REWRITES if brief.operator == "crossover" else (*REWRITES, "fix")
        asked = self.writing.forms.assign(parents[0], (), context, kinds=kinds)
        prompt, frozen = self._request(brief, parents, asked.form, context)
        if asked.change is not None:
            prompt = program_prompt(
                context.templates,
                self.statement,
                as_shown(asked.parent),
                form=asked.form,
                change=asked.change,
                advice=brief.advice,
                further=asked.further,
            )
            frozen = []
        kept: dict[str, JSON] = {name: [*each.parts] for name, each in zip(brief.parents, frozen, strict=False)}
        return await write_program(
            asked.parent,
            prompt,
            asked.form,
            context,
            role=CODE,
            operator=brief.operator,
            parents=asked.parents(parents),
            born=born,
            attributes={**({"frozen": kept} if kept else {}), **asked.attributes},
            mend=partial(keep_to, frozen, context),
            writing=self.writing,
            others=[] if asked.kind == "fix" else parents[1:],
        )

    def _request(
        self, brief: Brief, parents: Sequence[Candidate], form: Form, context: StageContext
    ) -> tuple[Prompt, list[Frozen]]:
        """The prompt, and what it asks to keep of each parent."""
        templates, first = context.templates, parents[0]
        failed = [Assessment.of(context.pool[name]).feedback for name in brief.failed]
        match brief.operator:
            case "refine":
                shown = as_shown(first)
                prompt = program_prompt(templates, self.statement, shown, form=form, advice=brief.advice, failed=failed)
                return prompt, []
            case "mutate":
                changes = mutation(first.artifact, brief.slots[0])
                prompt = mutation_prompt(
                    templates,
                    self.statement,
                    as_shown(first),
                    changes.keep,
                    changes.improve,
                    changes.why,
                    form=form,
                    advice=brief.advice,
                    failed=failed,
                )
                return prompt, [Frozen(first.artifact, changes.keep)]
            case "crossover":
                taken = crossing(first.artifact, *brief.slots)
                prompt = crossover_prompt(
                    templates,
                    self.statement,
                    as_shown(first),
                    as_shown(parents[1]),
                    taken.first,
                    taken.second,
                    taken.why,
                    form=form,
                    advice=brief.advice,
                    failed=failed,
                )
                return prompt, [Frozen(first.artifact, taken.first), Frozen(parents[1].artifact, taken.second)]
