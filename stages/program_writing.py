"""Having a model write a program: what it is shown of other programs, the call, and the strict reading of its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment, works
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.discard_reasons import UNCHANGED, UNREADABLE
from flowevolve.core.event_kinds import ProgramNotNew, ReplyPartlyRead
from flowevolve.core.graph import Discard
from flowevolve.core.named import Named
from flowevolve.core.pool import Candidate
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.core.templates import Prompt
from flowevolve.prompts.novelty import with_too_like
from flowevolve.prompts.programs import ShownProgram
from flowevolve.prompts.reading.again import example_of
from flowevolve.prompts.reading.children import Form, check_child, is_whole, read_child
from flowevolve.prompts.reading.descriptions import Description, read_description, read_printed
from flowevolve.prompts.reading.programs import ReadProgram
from flowevolve.stages.asking import Asker, ask, log_unreadable
from flowevolve.stages.command import CommandProposer
from flowevolve.stages.comments import commented_prompt
from flowevolve.stages.novelty import Like, Looked
from flowevolve.stages.writing import PLAIN, Writing

_PROPOSAL = Cost(proposals=1)


def as_shown(program: Candidate, failure: str | None = None) -> ShownProgram:
    """A program as prompts show it, with the feedback of its assessment. A program that failed or was not scored has no
    score; pass ``failure`` if its attributes do not contain the failure yet.
    """
    score = program.mean_score if failure is None and works(program) and program.scores else None
    named = Named.of(program)
    return ShownProgram(program.artifact, score, Assessment.of(program).feedback, named.name, named.idea)


async def write_program(
    parent: Candidate,
    prompt: Prompt,
    form: Form,
    context: StageContext,
    *,
    role: str,
    operator: str,
    parents: Sequence[Candidate],
    born: int,
    attributes: Mapping[str, JSON] | None = None,
    temperature: float | None = None,
    mend: Callable[[Artifact], Artifact] | None = None,
    writing: Writing = PLAIN,
    others: Sequence[Candidate] = (),
) -> Candidate:
    """Have a role write a program from that of ``parent``, and propose it. ``parents`` are the parents of the proposal.

    Each reply is charged as a proposal unless it changes nothing; each run of a command is charged as one.

    ``mend`` turns the program that was read into the one that is proposed. ``writing`` says which parts of a reply
    count, and which programs are rejected as too similar to others (see the event ``program.not_new``). If it has a
    command that writes programs, the command is run in place of the call, and finds ``others`` as files.

    Raises:
        Discard: if the reply can't be read (the event ``reply.unparsable`` says why), or the program is that of
            ``parent`` or of one of the ``parents``, or not new; or by ``mend``.
        LLMError: if a call failed for good.
        OverBudgetError: if there is no room for one more proposal.
    """
    prompt = commented_prompt(prompt, context, {each.id for each in (parent, *parents)})
    call = _Call(parent, form, context, role, operator, temperature, writing, others)
    write = call.program if writing.proposer is None else partial(call.by_command, writing.proposer)
    for left in reversed(range(writing.tries)):
        with context.reserved(_PROPOSAL):
            artifact, named = await write(prompt)
            try:
                artifact = artifact if mend is None else mend(artifact)
            except Discard:
                context.spend(_PROPOSAL)
                raise
            unchanged = any(artifact == each.artifact for each in (parent, *parents))
            if not unchanged or writing.proposer is not None:
                context.spend(_PROPOSAL)
        if unchanged:
            raise Discard(UNCHANGED)
        looked = Looked() if writing.novelty is None else await writing.novelty.look(artifact, parent, context)
        if looked.like is None:
            noted = {**(attributes or {}), **named.to_json(), **looked.attributes}
            return context.propose(artifact, parents=parents, operator=operator, attributes=noted, born=born)
        call.turn_down(looked.like, again=left > 0)
        prompt = with_too_like(context.templates, prompt)
    raise Discard("not new")


@dataclass(frozen=True, slots=True)
class _Call:
    """What the calls for one proposal share."""

    parent: Candidate
    form: Form
    context: StageContext
    role: str
    operator: str
    temperature: float | None
    writing: Writing
    others: Sequence[Candidate]

    async def program(self, prompt: Prompt) -> tuple[Artifact, Named]:
        """The program that one reply describes, and the name and idea that the reply gives it."""
        replies: list[str] = []
        parent, context = self.parent, self.context

        def read(reply: str) -> ReadProgram:
            replies.append(reply)
            program, writing = read_description(reply)[1], self.writing
            return read_child(program, parent.artifact, self.form, all_edits=writing.all_edits, entry=writing.entry)

        try:
            child = await ask(
                context,
                self.role,
                prompt,
                read,
                agent=self.operator,
                candidate=parent.id,
                temperature=self.temperature,
                whole=lambda reply: is_whole(read_description(reply)[1], parent.artifact, self.form),
            )
        except UnparsableReplyError as error:
            if error.reason is Reason.NO_OP:
                raise Discard(UNCHANGED) from error
            context.spend(_PROPOSAL)
            raise Discard(UNREADABLE) from error
        if child.left_out:
            _tell(context, child, Asker(self.role, self.operator, parent.id), replies[-1])
        return parent.artifact.replace(**child.files), _named(read_description(replies[-1])[0])

    async def by_command(self, proposer: CommandProposer, prompt: Prompt) -> tuple[Artifact, Named]:
        """The program that the command makes of the parent's, and the name and idea that it prints."""
        parent, context = self.parent, self.context
        wrote = await proposer.write(parent, self.others, prompt, context)
        try:
            check_child(wrote.files, parent.artifact, self.writing.entry)
        except UnparsableReplyError as error:
            log_unreadable(context, Asker(self.role, self.operator, parent.id), error, wrote.output)
            context.spend(_PROPOSAL)
            raise Discard(UNREADABLE) from error
        return parent.artifact.replace(**wrote.files), _named(read_printed(wrote.output))

    def turn_down(self, like: Like, *, again: bool) -> None:
        """Log an event about a program that is not new."""
        novelty = self.writing.novelty
        assert novelty is not None, "without novelty nothing is turned down"
        self.context.log(
            ProgramNotNew(
                self.context.stage,
                self.context.item_id,
                novelty.by,
                self.operator,
                like.program,
                like.similarity,
                like.reason,
                again,
            )
        )


def _named(description: Description) -> Named:
    return Named.model_validate(
        {name: text for name, text in (("name", description.name), ("idea", description.idea)) if text}
    )


def _tell(context: StageContext, child: ReadProgram, asker: Asker, reply: str) -> None:
    """Log an event about the parts of a reply that were left out."""
    context.log(
        ReplyPartlyRead(
            context.stage,
            context.item_id,
            asker.role,
            asker.agent,
            asker.candidate,
            tuple(each.reason.value for each in child.left_out),
            tuple(each.message for each in child.left_out),
            example_of(reply),
        )
    )
