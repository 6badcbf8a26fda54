"""New texts from a reflective dataset: by the user's own proposer, or by gepa's prompt and an LLM role of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from anyio import CapacityLimiter
from gepa.core.adapter import ProposalFn
from gepa.proposer.reflective_mutation.base import LanguageModel
from gepa.proposer.reflective_mutation.reflection_lm import ReflectionLM
from gepa.strategies.instruction_proposal import InstructionProposalSignature

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import EndedInThreadError, InputError, TaskFailedError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import run_all
from flowevolve.compat.gepa.arguments import check_template, one_proposer
from flowevolve.compat.gepa.records import NewTexts
from flowevolve.compat.gepa.threads import AdapterThreads, Reflections
from flowevolve.core.context import StageContext
from flowevolve.core.model import ChatReply, ChatRequest, RejectedError
from flowevolve.core.pool import Candidate
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.fences import blocks
from flowevolve.stages.asking import Asker, read_reply
from flowevolve.tasks.judging import value_in_words

ROLE = "reflection"
CALLABLE = "reflection_lm"
"""The name of a callable as a model."""
FAILURES_BEFORE_GIVING_UP = 10
"""After this many failures in a row, the run ends with an error instead of spending more. Reflection as a whole counts
as broken only if it has never worked; the user's reflection function or strategy also if it worked before.
"""
Texts = Mapping[str, str]
Propose = Callable[[dict[str, str], Reflections, list[str]], Texts]
"""gepa's `ProposalFn`."""
RunInThread = Callable[[Callable[[], Texts]], Awaitable[Texts]]


class Writer(Protocol):
    async def __call__(
        self, parent: Candidate, reflections: Reflections, components: Sequence[str], context: StageContext
    ) -> Texts:
        """Write new texts for some of the components; none if there is nothing to reflect on."""
        ...


@dataclass(frozen=True, slots=True)
class ByFunction:
    """A proposer of the user's, run in a thread. Messages call it ``where``. A resumed run does not ask it again for
    texts that it has already written.
    """

    propose: Propose
    where: str
    run: RunInThread

    async def __call__(
        self, parent: Candidate, reflections: Reflections, components: Sequence[str], context: StageContext
    ) -> Texts:
        propose = partial(self.propose, dict(parent.artifact), reflections, list(components))

        async def make() -> Mapping[str, JSON]:
            return {"texts": dict[str, JSON](await self.run(propose))}

        texts = NewTexts.from_json(await context.once(NewTexts.kind, make)).texts
        for name, text in texts.items():
            if not isinstance(text, str):
                raise InputError(
                    f"{self.where} returned {value_in_words(text)} for {name!r}; return texts by component"
                )
        unknown = sorted(set(texts) - set(parent.artifact))
        if unknown:
            raise InputError(
                f"{self.where} returned texts for {unknown}, which the candidate does not have; it has "
                f"{list(parent.artifact)}"
            )
        return texts


class Strategy:
    """A gepa `ReflectionLM` as a proposer: each call returns the object that the next call uses."""

    def __init__(self, strategy: ReflectionLM) -> None:
        self._strategy = strategy

    def __call__(self, candidate: dict[str, str], reflections: Reflections, components: list[str]) -> Texts:
        proposal, self._strategy = self._strategy.reflect(candidate, reflections, components)
        return proposal.new_texts


@dataclass(frozen=True, slots=True)
class ByPrompt:
    """Asks the reflection role with gepa's own prompt or the user's template for it: one call for each component, and
    one more if the token limit cut the reply off.
    """

    template: str | Mapping[str, str] | None
    takes_empty: bool
    """Whether an empty reply counts as an empty text, as in gepa, and not as unreadable."""

    async def __call__(
        self, parent: Candidate, reflections: Reflections, components: Sequence[str], context: StageContext
    ) -> Texts:
        known = [name for name in components if reflections.get(name)]
        texts = await run_all([partial(self._text, parent, reflections, name, context) for name in known])
        return dict(zip(known, texts, strict=True))

    async def _text(self, parent: Candidate, reflections: Reflections, name: str, context: StageContext) -> str:
        template = self.template if isinstance(self.template, str | None) else self.template.get(name)
        prompt = InstructionProposalSignature.prompt_renderer(
            {
                "current_instruction_doc": parent.artifact[name],
                "dataset_with_feedback": reflections[name],
                "prompt_template": template,
            }
        )
        if not isinstance(prompt, str):
            raise InputError(
                f"adapter.make_reflective_dataset: there are images in the records of {name!r}, which prompts can't "
                "hold here; give a custom_candidate_proposer that sends them"
            )
        model, asker = context.chat_model(name, parent.id, role=ROLE), Asker(ROLE, "reflect", parent.id, name)
        text = await read_reply(context, model.reply, prompt, self._extracted, asker, whole=_ends)
        if not text:
            context.log("gepa.empty_text", component=name, parent=parent.id)
        return text

    def _extracted(self, reply: str) -> str:
        text = InstructionProposalSignature.output_extractor(reply.strip())["new_instruction"]
        if not text and not self.takes_empty:
            raise UnparsableReplyError("the new text in the reply is empty", Reason.EMPTY)
        return text


def _ends(reply: str) -> bool:
    """Whether the block with the new text ended before the token limit cut the reply off."""
    found = blocks(reply)
    return bool(found) and found[-1].closed


def make_writer(
    adapter: AdapterThreads,
    custom: ProposalFn | None,
    strategy: ReflectionLM | None,
    model: LanguageModel | str | None,
    template: str | dict[str, str] | None,
    concurrency: int,
    components: Sequence[str],
    *,
    takes_empty: bool,
) -> Writer:
    """The writer that gepa's arguments ask for. ``concurrency`` bounds the calls of a proposer that is not the
    adapter's, and ``takes_empty`` is as for `ByPrompt`. ``components`` are the candidate's.

    Raises:
        InputError: if the arguments ask for none, or for more than one.
    """
    own = getattr(adapter.adapter, "propose_new_texts", None)
    where = one_proposer(
        {"adapter.propose_new_texts": own, "custom_candidate_proposer": custom, "reflection_strategy": strategy}
    )
    check_template(template, components, used=where is None)
    if own is not None:
        return ByFunction(own, "adapter.propose_new_texts", adapter.run)
    if custom is not None:
        return ByFunction(custom, "custom_candidate_proposer", partial(in_thread, limiter=CapacityLimiter(concurrency)))
    if strategy is not None:
        return ByFunction(Strategy(strategy), "reflection_strategy", partial(in_thread, limiter=CapacityLimiter(1)))
    if model is None:
        raise InputError(
            "reflection_lm is missing, and nothing else proposes texts; give it, or give custom_candidate_proposer or "
            "reflection_strategy"
        )
    return ByPrompt(template, takes_empty)


class CallableTransport:
    """A synchronous function from prompt to text as a backend: each call in a thread, ``concurrency`` at a time."""

    def __init__(self, model: LanguageModel, concurrency: int) -> None:
        self._model = model
        self._limiter = CapacityLimiter(concurrency)
        self._worked = False
        self._in_a_row = 0
        """Failures since it last worked."""

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Call the function. A thread can't be ended, so a time-out has to be part of the function.

        Raises:
            RejectedError: if the function failed.
            TaskFailedError: if it failed `FAILURES_BEFORE_GIVING_UP` times in a row. It is not waited for, as a server
                that is out of order would be.
        """
        (message,) = request.messages
        try:
            text: object = await in_thread(self._model, message.content, limiter=self._limiter)
            if not isinstance(text, str):
                raise TypeError(f"it returned something of type {type(text).__name__}, but has to return a text")
        except EndedInThreadError:
            raise
        except Exception as error:
            self._in_a_row += 1
            reason = f"{CALLABLE} failed with {type(error).__name__}: {error}"
            if self._in_a_row >= FAILURES_BEFORE_GIVING_UP:
                when = f"for the {FAILURES_BEFORE_GIVING_UP}th time in a row"
                if not self._worked:
                    when = f"as on each of the first {FAILURES_BEFORE_GIVING_UP} calls"
                raise TaskFailedError(f"{reason}, {when}") from error
            raise RejectedError(reason) from error
        self._worked = True
        self._in_a_row = 0
        return ChatReply(text, model=request.model)

    async def models(self) -> tuple[str, ...]:
        return (CALLABLE,)

    async def aclose(self) -> None:
        """Nothing to close."""
