"""ContextEvolve's other stages: a parent, examples, a program, its summary, the commit; and the repair of steps."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace

from flowevolve.algorithms.context_evolve.config import ContextEvolveConfig
from flowevolve.algorithms.context_evolve.evolve_buffer import EvolveBuffer, in_words
from flowevolve.algorithms.context_evolve.navigate import for_agents
from flowevolve.algorithms.context_evolve.payloads import Chosen, Step
from flowevolve.core.assessment import Assessment, NothingWorksError
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item, Stale
from flowevolve.core.model import LLMError
from flowevolve.core.pool import Add, Candidate
from flowevolve.core.record import Record
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.policies.drawing import by_rank, draw
from flowevolve.prompts.abstracts import (
    Example,
    Summary,
    exemplars_prompt,
    read_examples,
    read_summary,
    summarize_prompt,
)
from flowevolve.prompts.programs import program_prompt
from flowevolve.stages import Assessed, Writing, Written, as_shown, ask, write_program

CODE, AGENT = "code", "agent"
"""The LLM roles: one writes programs, the other all texts about them."""
SAMPLER, SUMMARIZER = "sampler", "summarizer"
"""The names of the agents, by which their calls are accounted for."""
UNDESCRIBED = "Nobody has described this program."
SAMPLED = "context_evolve.sampled"


class Selected(Record, kind="context_evolve.selected"):
    """The parent of the next program."""

    parent: str
    version: int
    failed: tuple[str, ...] = ()
    """The programs that failed last."""


class Offered(Record, kind="context_evolve.offered"):
    """The ids of the programs that examples are chosen from, or that are the examples."""

    programs: tuple[str, ...]


class Renewed(Record, kind="context_evolve.renewed"):
    """The version of the pool that a step was sent back at."""

    version: int


@dataclass(frozen=True)
class Steps:
    """The stages of a step that use the buffer or write a program."""

    buffer: EvolveBuffer
    statement: str
    config: ContextEvolveConfig
    writing: Writing

    async def select(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Draw a parent with a probability proportional to 1/rank (the paper only says by set criteria)."""
        selected = context.decide(Selected, lambda: self._select(context))
        step = Step(context.pool[selected.parent], failed=selected.failed)
        yield Emit(step, version=selected.version, derives=(selected.parent,))

    def _select(self, context: StageContext) -> Selected:
        parents = self.buffer.parents
        if not parents:
            raise NothingWorksError
        (parent,) = draw(parents, by_rank(len(parents)), 1, context.random)
        failed = tuple(each.id for each in self.buffer.failures)
        return Selected(parent=parent.id, version=context.pool.version, failed=failed)

    async def sample(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Have the Sampler choose examples from a part of the buffer (§4.2); the best if its reply can't be read."""
        step = item.expect(Step)
        offered = _settled(context, self.buffer.examples(step.parent, self.config.shown, context.random))
        chosen = await self._choose(step, offered, context) if offered and self.config.examples else ()
        context.log(SAMPLED, programs=[each.program for each in chosen])
        shown = tuple(Chosen(context.pool[each.program], each.why) for each in chosen)
        yield Emit(replace(step, examples=shown))

    async def _choose(self, step: Step, offered: Sequence[Candidate], context: StageContext) -> Sequence[Example]:
        programs = {each.id: for_agents(each) for each in offered}
        most = self.config.examples
        prompt = exemplars_prompt(
            context.templates, self.statement, for_agents(step.parent), programs, most, step.guidance
        )
        try:
            return await ask(
                context,
                AGENT,
                prompt,
                lambda reply: read_examples(reply, programs, most),
                agent=SAMPLER,
                candidate=step.parent.id,
            )
        except UnparsableReplyError:
            ranked = sorted(offered, key=lambda each: -_worth(each))
            return [Example(each.id, "") for each in ranked[:most]]

    async def pick(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Choose examples without an agent: the best programs, or with ``raw_history`` half best, half newest ones."""
        step, raw = item.expect(Step), self.config.raw_history
        found = self.buffer.history(step.parent, raw) if raw else self.buffer.top(step.parent, self.config.examples)
        yield Emit(replace(step, examples=tuple(Chosen(each) for each in _settled(context, found))))

    async def generate(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Have a program written from its parent's code by the guidance; the prompt shows the examples' code."""
        step = item.expect(Step)
        asked = self.writing.forms.assign(step.parent, [each.program for each in step.examples], context)
        prompt = program_prompt(
            context.templates,
            self.statement,
            as_shown(asked.parent),
            form=asked.form,
            change=asked.change or "generate",
            failed=[] if asked.change else [Assessment.of(context.pool[name]).feedback for name in step.failed],
            others=[as_shown(each) for each in asked.others],
            advice=step.guidance if asked.kind == "fix" else _advice(step),
            further=asked.further,
        )
        program = await write_program(
            asked.parent,
            prompt,
            asked.form,
            context,
            role=CODE,
            operator="generate",
            parents=asked.parents([step.parent]),
            born=item.version,
            writing=self.writing,
            others=asked.others,
            attributes={
                "examples": [each.program.id for each in step.examples],
                "guided": step.guided,
                **asked.attributes,
            },
        )
        yield Emit(Written(program))


def _settled(context: StageContext, programs: Sequence[Candidate]) -> list[Candidate]:
    """These programs or, if the work is repeated after an interruption, those that it had the first time."""
    offered = context.decide(Offered, lambda: Offered(programs=tuple(each.id for each in programs)))
    return [context.pool[name] for name in offered.programs]


def _worth(program: Candidate) -> float:
    score = for_agents(program).score
    return float("-inf") if score is None else score


def _advice(step: Step) -> str:
    """The guidance, and why each example was chosen."""
    reasons = [f"Program {number}: {each.why}" for number, each in enumerate(step.examples, 1) if each.why]
    return "\n\n".join(part for part in (step.guidance, "\n".join(reasons)) if part)


async def summarize(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    """Have an assessed program described for the other agents, and attach the `Summary` to it.

    The evaluation must not be lost with the description. So if the reply can't be read, or the call fails for good, the
    abstract repeats that of the first parent and says so (`stand_in`), and an event ``candidate.undescribed`` is
    logged.
    """
    assessed = item.expect(Assessed)
    candidate = assessed.candidate
    parent = in_words(context.pool[candidate.parents[0]]) if candidate.parents else ""
    prompt = summarize_prompt(context.templates, candidate.artifact, parent)
    try:
        summary = await ask(context, AGENT, prompt, read_summary, agent=SUMMARIZER, candidate=candidate.id)
    except (UnparsableReplyError, LLMError) as error:
        context.log("candidate.undescribed", candidate=candidate.id, error=str(error))
        summary = stand_in(parent)
    yield Emit(replace(assessed, candidate=summary.on(candidate)))


def stand_in(parent: str) -> Summary:
    """The summary of a program that could not be described: what it was made from, and that nothing else is known."""
    said = f"{UNDESCRIBED} It was made from this:\n{parent}" if parent else UNDESCRIBED
    return Summary(abstract=parent if parent.startswith(UNDESCRIBED) else said, inherited=(), new=())


async def update(item: Item[object], context: UpdateContext) -> None:
    """Commit a program with all that is known of it; one that failed enters as ``rejected``."""
    assessed = item.expect(Assessed)
    context.commit([Add(assessed.candidate, "confirmed" if assessed.failure is None else "rejected")])


async def renew(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    """Repair a stale step for which no program is written yet: send it back for new guidance and new examples."""
    stale = item.expect(Stale)
    version = context.decide(Renewed, lambda: Renewed(version=context.pool.version)).version
    old = stale.item.expect(Step)
    yield Emit(Step(old.parent, failed=old.failed), to=stale.back_to, version=version)
