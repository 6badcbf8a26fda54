"""merging: one text made from several, for stages that can go on without it if that fails."""

from __future__ import annotations

from functools import partial

from flowevolve._util.json_types import JSON
from flowevolve.core.context import StageContext
from flowevolve.core.model import LLMError
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.instructions import is_whole, read_instruction
from flowevolve.stages.asking import Asker, read_reply


async def try_merging(
    prompt: str, *, before: str, key: str, candidate: str, context: StageContext, **about: JSON
) -> str | None:
    """The text with which the role ``reflection`` answers a prompt; None if a call fails or no reply can be read.

    ``before`` is the text from which it is made, ``key`` distinguishes this call from others of the stage's work, and
    ``candidate`` is the candidate for which the call is counted. A failure is logged as ``merge.failed``, with the
    fields of ``about``.
    """
    model = context.chat_model(key, candidate, role="reflection")
    read = partial(read_instruction, longest=context.templates.longest(before))
    try:
        asker = Asker("reflection", "merge", candidate)
        return await read_reply(context, model.reply, prompt, read, asker, whole=is_whole)
    except (UnparsableReplyError, LLMError) as error:
        context.log("merge.failed", **about, reason=str(error))
        return None
