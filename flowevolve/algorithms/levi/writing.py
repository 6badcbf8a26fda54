"""How candidates are written: programs by edits or whole, prompts by reflection on what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.algorithms.levi.payloads import Brief
from flowevolve.algorithms.levi.prompts import INSTRUCTIONS_STATEMENT, instruction_prompt
from flowevolve.budget import Cost
from flowevolve.concurrency import run_all
from flowevolve.context import StageContext
from flowevolve.errors import InputError
from flowevolve.llm.types import Message, UnparsableReplyError
from flowevolve.pool import Candidate
from flowevolve.programs.prompts import program_prompt, seed_prompt
from flowevolve.programs.task import ProgramTask
from flowevolve.prompts import ReflectionExample, parse_instruction
from flowevolve.stage import Discard
from flowevolve.stages.coding import as_shown, write_program
from flowevolve.stages.rollouts import Rollouts
from flowevolve.tasks.base import Rollout, Task

LARGE, SMALL = "large", "small"
"""Roles: one for what is to be unlike all there is, one for what is to be a little better."""


class Writer(Protocol):
    """Writes what a brief asks for."""

    statement: str
    """What is to be written, in words for a model."""
    rollouts: int
    """How many it runs to write one candidate."""

    async def write(self, brief: Brief, shown: Sequence[Candidate], born: int, context: StageContext) -> Candidate:
        """A proposal. ``shown`` are the brief's candidates, parent first; ``born`` the version they were chosen at.

        Raises:
            Discard: if nothing comes of it.
            LLMError: if a call failed for good.
        """
        ...


def make_writer(task: Task, config: LEVIConfig, rollouts: Rollouts) -> Writer:
    """Raises:
    InputError: if nobody knows how to write what the task is about.
    """
    if isinstance(task, ProgramTask):
        return ProgramWriter(task, config)
    if task.seed().kind != "prompt":
        raise InputError(f"task {task.name!r}: LEVI evolves programs and prompts, not a {task.seed().kind}")
    if not task.data.train:
        raise InputError(f"task {task.name!r}: LEVI needs training examples to rewrite prompts by")
    return PromptWriter(task, config, rollouts)


class ProgramWriter:
    """Whole programs where they are to be unlike others; else what ``form`` says."""

    rollouts = 0

    def __init__(self, task: ProgramTask, config: LEVIConfig) -> None:
        self.statement = task.problem.statement
        self._config = config

    async def write(self, brief: Brief, shown: Sequence[Candidate], born: int, context: StageContext) -> Candidate:
        programs = [as_shown(each) for each in shown]
        if brief.unlike:
            prompt = seed_prompt(self.statement, programs)
        else:
            prompt = program_prompt(
                self.statement, programs[0], form=self._config.form, others=programs[1:], advice=brief.advice
            )
        return await write_program(
            shown[0],
            prompt,
            "whole" if brief.unlike else self._config.form,
            context,
            role=LARGE if brief.unlike else SMALL,
            operator=brief.operator,
            parents=() if brief.operator == "diverse" else shown,
            born=born,
        )


class PromptWriter:
    """Runs the parent on a few training examples, then has a component rewritten; all, if it is to be unlike others."""

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
        context.spend(Cost(proposals=1))
        artifact = parent.artifact.replace(**texts)
        if artifact == parent.artifact:
            raise Discard("unchanged")
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
    examples = [
        ReflectionExample(call.inputs, call.output, rollout.score.feedback)
        for rollout in rollouts
        for call in rollout.calls
        if call.component == component
    ]
    texts = [other.artifact[component] for other in others]
    prompt = instruction_prompt(
        component, parent.artifact[component], examples, others=texts, advice=brief.advice, unlike=brief.unlike
    )
    model = context.chat_model(component, parent.id, role=LARGE if brief.unlike else SMALL)
    reply = await model([Message("user", prompt)])
    try:
        return parse_instruction(reply)
    except UnparsableReplyError as error:
        context.log("reply.unparsable", component=component, error=str(error))
        raise Discard("unparsable reply") from error
