"""How LEVI's candidates are written: programs by edits or whole, prompts by reflection on rollouts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from flowevolve._util.errors import InputError
from flowevolve._util.tasks import run_all
from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.algorithms.levi.payloads import Brief, Unwritten
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.discard_reasons import UNCHANGED, UNREADABLE
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.model import LLMError
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.core.task import Rollout, Task
from flowevolve.core.templates import Prompt, Templates
from flowevolve.programs.task import ProgramTask
from flowevolve.prompts.instructions import Rewriting, ShownInstruction, instruction_prompt
from flowevolve.prompts.programs import (
    Change,
    ShownProgram,
    listed_programs,
    program_prompt,
    seed_prompt,
    shown_failures,
    shown_task,
)
from flowevolve.prompts.reading.instructions import is_whole, read_instruction
from flowevolve.prompts.reflection import reflection_examples
from flowevolve.stages import Rollouts, Written, as_shown, write_program
from flowevolve.stages.asking import Asker, read_reply
from flowevolve.stages.comments import commented
from flowevolve.stages.forms import KINDS, REWRITES

LARGE, SMALL = "large", "small"
"""The roles: the large model writes candidates that are to be unlike all others, the small one improves candidates a
little.
"""
_SPENT = "init has had its share of the budget"

INSTRUCTIONS_STATEMENT = """\
A language model works from instructions that are being evolved. Its answers are checked, and the score of an
instruction is the mean over many examples."""


class Afforded(Record, kind="levi.afforded"):
    """The share of the budget that would be spent with one more candidate."""

    share: float


class Writer(Protocol):
    """Writes what a brief asks for."""

    statement: str
    """What is to be written, in words for a model."""
    rollouts: int
    """How many rollouts it takes to write one candidate."""

    async def write(self, brief: Brief, shown: Sequence[Candidate], born: int, context: StageContext) -> Candidate:
        """Write a proposal. ``shown`` are the brief's candidates, parent first; ``born`` the version they were chosen
        at.

        Raises:
            Discard: if there is no proposal.
            LLMError: if a call failed for good.
        """
        ...


def make_writer(task: Task, config: LEVIConfig, rollouts: Rollouts) -> Writer:
    """Raises:
    InputError: if candidates of this task can't be written with these settings.
    """
    if isinstance(task, ProgramTask):
        return ProgramWriter(task, config)
    if task.seed().kind != "prompt":
        raise InputError(f"task {task.name!r}: LEVI evolves programs and prompts, not a {task.seed().kind}")
    if config.novelty.by != "none":
        raise InputError(
            'algorithm.novelty: it is only for programs, and this task has prompts; leave it out, or set by = "none"'
        )
    if config.proposer.command:
        raise InputError(
            "algorithm.proposer.command: a command can only write programs, and this task has prompts; leave it out"
        )
    if not task.data.train:
        raise InputError(f"task {task.name!r}: LEVI needs training examples to rewrite prompts by")
    return PromptWriter(task, config, rollouts)


class ProgramWriter:
    """Asks for whole programs if they are to be unlike others, else for the configured ``form``."""

    rollouts = 0

    def __init__(self, task: ProgramTask, config: LEVIConfig) -> None:
        self.statement = task.problem.statement
        self._writing = config.writing(task.problem)

    async def write(self, brief: Brief, shown: Sequence[Candidate], born: int, context: StageContext) -> Candidate:
        if brief.unlike:
            return await self._unlike(brief, shown, born, context)
        kinds = KINDS if brief.operator == "mutate" else REWRITES
        asked = self._writing.forms.assign(shown[0], shown[1:], context, kinds=kinds)
        change: Change = "variant" if brief.operator == "variant" else "crossover" if asked.others else "mutation"
        prompt = program_prompt(
            context.templates,
            self.statement,
            as_shown(asked.parent),
            form=asked.form,
            change=asked.change or change,
            others=[as_shown(each) for each in asked.others],
            advice=brief.advice,
            further=asked.further,
        )
        return await write_program(
            asked.parent,
            prompt,
            asked.form,
            context,
            role=SMALL,
            operator=brief.operator,
            parents=asked.parents(shown),
            born=born,
            attributes=asked.attributes,
            writing=self._writing,
            others=asked.others,
        )

    async def _unlike(self, brief: Brief, shown: Sequence[Candidate], born: int, context: StageContext) -> Candidate:
        """Write a program that is to be unlike those that are shown."""
        earlier = [as_shown(context.pool[name]) for name in brief.earlier]
        programs = [as_shown(each) for each in shown]
        shift = brief.operator == "shift"
        return await write_program(
            shown[0],
            seed_prompt(context.templates, self.statement, programs, shift=shift, earlier=earlier),
            "whole",
            context,
            role=LARGE,
            operator=brief.operator,
            parents=() if brief.operator == "diverse" else shown,
            born=born,
            writing=self._writing,
            others=shown[1:],
        )


class PromptWriter:
    """Runs the parent on a few training examples, then has one component rewritten, or all of them if the prompt is to
    be unlike others.
    """

    statement = INSTRUCTIONS_STATEMENT

    def __init__(self, task: Task, config: LEVIConfig, rollouts: Rollouts) -> None:
        self._rollouts = rollouts
        self._ids = tuple(example.id for example in task.data.train)
        self.rollouts = min(config.minibatch, len(self._ids))

    async def write(self, brief: Brief, shown: Sequence[Candidate], born: int, context: StageContext) -> Candidate:
        parent, *others = shown
        names = list(parent.artifact)
        chosen = names if brief.unlike else [context.random.choice(names)]
        batch = context.random.sample(self._ids, self.rollouts)
        rollouts = await self._rollouts.run(parent, batch, "train", context)
        jobs = [partial(_rewritten, name, parent, others, brief, rollouts, context) for name in chosen]
        texts = dict(zip(chosen, await run_all(jobs), strict=True))
        artifact = parent.artifact.replace(**texts)
        if artifact == parent.artifact:
            raise Discard(UNCHANGED)
        context.begin(Cost(proposals=1))
        parents = () if brief.operator == "diverse" else shown
        return context.propose(artifact, parents=parents, operator=brief.operator, born=born)


async def _rewritten(
    component: str,
    parent: Candidate,
    others: Sequence[Candidate],
    brief: Brief,
    rollouts: Sequence[Rollout],
    context: StageContext,
) -> str:
    rewriting: Rewriting = "shift" if brief.unlike else "variant" if brief.operator == "variant" else "mutation"
    earlier = [context.pool[name] for name in brief.earlier]
    text = parent.artifact[component]
    prompt = instruction_prompt(
        context.templates,
        rewriting,
        component,
        text,
        reflection_examples(component, commented(rollouts, context, parent)),
        others=_shown_instructions(component, others),
        earlier=_shown_instructions(component, earlier),
        advice=brief.advice,
    )
    model = context.chat_model(component, parent.id, role=LARGE if brief.unlike else SMALL)
    read = partial(read_instruction, parent=text, longest=context.templates.longest(text))
    asker = Asker(LARGE if brief.unlike else SMALL, brief.operator, parent.id, component)
    try:
        return await read_reply(context, model.reply, prompt, read, asker, whole=is_whole)
    except UnparsableReplyError as error:
        raise Discard(UNREADABLE) from error


def _shown_instructions(component: str, candidates: Sequence[Candidate]) -> list[ShownInstruction]:
    return [ShownInstruction(each.artifact[component], as_shown(each).score) for each in candidates]


@dataclass(frozen=True)
class Write:
    """Has candidates written as their briefs say. If a diverse seed can't be written, the update stage is told, and may
    have another try made.
    """

    writer: Writer
    init_share: float
    expected: Callable[[], Cost]
    """The part of a candidate's cost that is known beforehand, without tokens and dollars."""

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        brief = item.expect(Brief)
        if brief.opening and not self._affordable(context):
            if brief.operator != "diverse":
                raise Discard(_SPENT)
            yield Emit(Unwritten(_SPENT, last=True), to="update")
            return
        shown = [context.pool[name] for name in brief.shown]
        try:
            candidate = await self.writer.write(brief, shown, item.version, context)
        except (Discard, LLMError) as error:
            if brief.operator != "diverse":
                raise
            emission = Emit(Unwritten(str(error)), to="update")
        else:
            emission = Emit(Written(candidate), to="evaluate", derives=candidate.parents)
        yield emission

    def _affordable(self, context: StageContext) -> bool:
        """Whether the opening's share of the budget allows one more candidate. This is checked for each of them,
        because the cost in tokens, dollars and failed tries was not known when seeds and variants were planned.
        """
        return context.decide(Afforded, lambda: Afforded(share=context.share(self.expected()))).share <= self.init_share


def advice_prompt(
    templates: Templates, statement: str, best: Sequence[ShownProgram], failures: Sequence[str]
) -> Prompt:
    """Ask for advice, given good candidates of different kinds, best first, and why others failed."""
    return templates.write(
        "advice",
        lambda shorten: {
            "data": templates.text("data"),
            "statement": shown_task(statement),
            "best": listed_programs("Program", best, shorten),
            "failures": shown_failures(failures, shorten) or templates.text("no_failures"),
        },
    )
