"""propose: have an LLM reflect on rollouts and write a better text (GEPA, arXiv 2507.19457, algorithm 1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial

from flowevolve._util.tasks import run_all
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.discard_reasons import NO_TRACE, ROLLOUTS_FAILED, UNCHANGED, UNREADABLE
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.model import LLMError
from flowevolve.core.pool import Candidate
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.core.task import Rollout
from flowevolve.prompts.reading.instructions import is_whole, read_instruction
from flowevolve.prompts.reflection import WriteReflection, reflect_on, reflection_examples
from flowevolve.stages.asking import Asker, read_reply
from flowevolve.stages.comments import commented
from flowevolve.stages.payloads import Proposed, Rolled, Selected


@dataclass(frozen=True)
class Propose:
    """Makes one reflection call per selected component, and proposes a candidate with the new texts."""

    write: WriteReflection = reflect_on

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        rolled = item.expect(Rolled)
        selected = rolled.selected
        texts = await reflect_all(rolled, context, self.write)
        artifact = rewritten(selected, texts)
        if artifact == selected.parent.artifact:
            raise Discard(UNCHANGED)
        context.begin(Cost(proposals=1))
        candidate = context.propose(artifact, parents=[selected.parent], operator="reflect", born=item.version)
        baseline = tuple(rollout.score.value for rollout in rolled.rollouts)
        yield Emit(
            Proposed(candidate, selected.batch, baseline, origin=selected.parent.artifact),
            derives=(selected.parent.id,),
        )


def rewritten(selected: Selected, texts: Sequence[str | None]) -> Artifact:
    """The parent's artifact with the new texts of the selected components; None keeps a component's text."""
    new = zip(selected.components, texts, strict=True)
    return selected.parent.artifact.replace(**{component: text for component, text in new if text is not None})


async def reflect_all(
    rolled: Rolled, context: StageContext, write: WriteReflection = reflect_on
) -> tuple[str | None, ...]:
    """A better text of each selected component, in their order, by concurrent calls; None for one for which `reflect`
    raises.

    Raises:
        Discard, LLMError: as in `reflect`, if it raises for every component.
    """
    selected = rolled.selected

    async def attempt(component: str) -> str | Discard | LLMError:
        try:
            return await reflect(selected.parent, component, rolled.rollouts, context, write)
        except (Discard, LLMError) as error:
            return error

    outcomes = await run_all([partial(attempt, component) for component in selected.components])
    texts = tuple(outcome if isinstance(outcome, str) else None for outcome in outcomes)
    if all(text is None for text in texts) and not isinstance(outcomes[0], str):
        raise outcomes[0]
    return texts


async def reflect(
    parent: Candidate,
    component: str,
    rollouts: Sequence[Rollout],
    context: StageContext,
    write: WriteReflection = reflect_on,
) -> str:
    """Make one reflection call: a better text of one component of ``parent``, given rollouts with it.

    Raises:
        Discard: if every rollout failed, if none used the component, or the reply can't be read.
        LLMError: if the call failed for good.
    """
    examples = reflection_examples(component, commented(rollouts, context, parent))
    if not examples:
        failures = [rollout.score.failure for rollout in rollouts]
        if failures and all(failures):
            raise Discard(f"{ROLLOUTS_FAILED}: {failures[0]}")
        named = dict.fromkeys(repr(call.component) for rollout in rollouts for call in rollout.calls)
        raise Discard(f"{NO_TRACE} {component!r}: the rollouts name {', '.join(named) or 'none'}")
    text = parent.artifact[component]
    prompt = write(context.templates, component, parent.artifact, examples)
    model = context.chat_model(component, parent.id, role="reflection")
    read = partial(read_instruction, parent=text, longest=context.templates.longest(text))
    asker = Asker("reflection", "reflect", parent.id, component)
    try:
        return await read_reply(context, model.reply, prompt, read, asker, whole=is_whole)
    except UnparsableReplyError as error:
        raise Discard(UNREADABLE) from error
