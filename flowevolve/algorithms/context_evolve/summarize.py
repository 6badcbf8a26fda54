"""summarize: put a program that was assessed into words, so that others can go by these instead of the code.

It stands between assessment and the commit, so that a candidate enters its pool with its abstract or not at all.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from flowevolve.algorithms.context_evolve.evolve_buffer import Abstract
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.core.model import LLMError, UnparsableReplyError
from flowevolve.core.pool import Candidate
from flowevolve.prompts.abstracts import Summary, read_summary, summarize_prompt
from flowevolve.stages import Assessed, ask

SUMMARIZER = "summarizer"
"""The agent's name in the accounts."""
UNDESCRIBED = "Nobody has described this program."


@dataclass(frozen=True)
class Summarize:
    """Takes `Assessed`, emits it with an `Abstract` noted on the candidate.

    An evaluation is worth more than its description. If the reply can't be read, or the call fails for good, the
    abstract repeats that of the first parent and says so (`stand_in`), and there is an event ``candidate.undescribed``.
    """

    role: str

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        assessed = item.expect(Assessed)
        candidate = assessed.candidate
        summary = await summarize(candidate, abstract_of_parent(candidate, context), self.role, context)
        abstract = Abstract(abstract=summary.abstract, inherited=summary.inherited, new=summary.new)
        yield Emit(replace(assessed, candidate=abstract.on(candidate)))


async def summarize(candidate: Candidate, parent: str, role: str, context: StageContext) -> Summary:
    """A program in words, by one call of the role. ``parent`` is what it was made from, in words; empty: nothing."""
    prompt = summarize_prompt(candidate.artifact, parent)
    try:
        return await ask(context, role, prompt, read_summary, agent=SUMMARIZER, candidate=candidate.id)
    except (UnparsableReplyError, LLMError) as error:
        context.log("candidate.undescribed", candidate=candidate.id, error=str(error))
        return stand_in(parent)


def stand_in(parent: str) -> Summary:
    """The summary of a program that could not be described: what it was made from, and that nothing else is known."""
    if parent.startswith(UNDESCRIBED):
        return Summary(parent)
    return Summary(f"{UNDESCRIBED} It was made from this:\n{parent}" if parent else UNDESCRIBED)


def abstract_of_parent(candidate: Candidate, context: StageContext) -> str:
    """The first parent in words; empty if there is none."""
    return in_words(context.pool[candidate.parents[0]]) if candidate.parents else ""


def in_words(candidate: Candidate) -> str:
    """A described candidate as prompts show it, with its traits; empty if it was not described."""
    said = Abstract.of(candidate)
    return str(Summary(said.abstract, said.inherited, said.new)) if said.abstract else ""
