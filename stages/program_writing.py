"""Having a model write a program: what it is shown of others, one call, and the strict reading of its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment, works
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.event_kinds import ReplyPartlyRead
from flowevolve.core.graph import Discard
from flowevolve.core.model import Reason, UnparsableReplyError
from flowevolve.core.pool import Candidate
from flowevolve.prompts.programs import ShownProgram
from flowevolve.prompts.reading.again import example_of
from flowevolve.prompts.reading.children import Form, read_child
from flowevolve.prompts.reading.programs import ReadProgram
from flowevolve.stages.asking import Asker, ask


def as_shown(program: Candidate, failure: str | None = None) -> ShownProgram:
    """A program as prompts show it, with what its assessment said. One that failed or was not scored has no score;
    ``failure`` is that of one whose attributes don't say so yet.
    """
    score = program.mean_score if failure is None and works(program) and program.scores else None
    return ShownProgram(program.artifact, score, Assessment.of(program).feedback)


async def write_program(
    parent: Candidate,
    prompt: str,
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
    all_edits: bool = False,
) -> Candidate:
    """A proposal made of ``parent``'s program by a call of the role. ``parents`` are those it descends from.

    ``mend`` makes of the program that was read the one that is proposed. With ``all_edits``, a reply of which an edit
    can't be made is one that can't be read.

    Raises:
        Discard: if the reply can't be read (the event ``reply.unparsable`` says why), or the program is that of
            ``parent`` or of one of the ``parents``; or by ``mend``.
        LLMError: if the call failed for good.
        OverBudgetError: if there is no room for one more proposal.
    """
    replies: list[str] = []

    def read(reply: str) -> ReadProgram:
        if not replies:
            context.begin(Cost(proposals=1))
        replies.append(reply)
        return read_child(reply, parent.artifact, form, all_edits=all_edits)

    try:
        child = await ask(context, role, prompt, read, agent=operator, candidate=parent.id, temperature=temperature)
    except UnparsableReplyError as error:
        raise Discard("unchanged" if error.reason is Reason.NO_OP else "unparsable reply") from error
    if child.left_out:
        _tell(context, child, Asker(role, operator, parent.id), replies[-1])
    artifact = parent.artifact.replace(**child.files)
    if mend is not None:
        artifact = mend(artifact)
    if any(artifact == each.artifact for each in (parent, *parents)):
        raise Discard("unchanged")
    return context.propose(artifact, parents=parents, operator=operator, attributes=attributes, born=born)


def _tell(context: StageContext, child: ReadProgram, asker: Asker, reply: str) -> None:
    """Write an event on what of a reply was left out."""
    partly = ReplyPartlyRead(
        context.stage,
        context.item_id,
        asker.role,
        asker.agent,
        asker.candidate,
        tuple(each.reason.value for each in child.left_out),
        tuple(each.message for each in child.left_out),
        example_of(reply),
    )
    context.log(partly.kind, **partly.to_json())
