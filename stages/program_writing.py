"""Having a model write a program: what it is shown of others, one call, and the strict reading of its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment, works
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard
from flowevolve.core.model import UnparsableReplyError
from flowevolve.core.pool import Candidate
from flowevolve.prompts.programs import Form, ShownProgram, read_program
from flowevolve.stages.asking import call, understand


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
) -> Candidate:
    """A proposal made of ``parent``'s program by one call of the role. ``parents`` are those it descends from.

    ``mend`` makes of the program that was read the one that is proposed.

    Raises:
        Discard: if the reply can't be read (the event ``reply.unparsable`` says why), or the program is that of
            ``parent`` or of one of the ``parents``; or by ``mend``.
        LLMError: if the call failed for good.
    """
    reply = await call(context, role, prompt, agent=operator, candidate=parent.id, temperature=temperature)
    context.begin(Cost(proposals=1))
    read = partial(read_program, parent=parent.artifact, form=form)
    try:
        artifact = understand(context, reply, read, agent=operator, role=role, candidate=parent.id)
    except UnparsableReplyError as error:
        raise Discard("unparsable reply") from error
    if mend is not None:
        artifact = mend(artifact)
    if any(artifact == each.artifact for each in (parent, *parents)):
        raise Discard("unchanged")
    return context.propose(artifact, parents=parents, operator=operator, attributes=attributes, born=born)
