"""merging: one call that makes one text of several, for stages that go on without it where it fails."""

from __future__ import annotations

from flowevolve._util.json_types import JSON
from flowevolve.core.context import StageContext
from flowevolve.core.model import LLMError, Message, UnparsableReplyError
from flowevolve.prompts.reading.instructions import read_instruction

TRIES = 2
"""How often a merge is asked for, where its reply can't be read."""


async def try_merging(prompt: str, *, key: str, candidate: str, context: StageContext, **about: JSON) -> str | None:
    """The text that the role ``reflection`` answers a prompt with; None if the call fails or can't be read twice.

    ``key`` tells this call from the others of the stage's work, and ``candidate`` is the one that it is counted with.
    A failure is logged as ``merge.failed`` with what it was ``about``.
    """
    model = context.chat_model(key, candidate, role="reflection")
    reason = ""
    for _ in range(TRIES):
        try:
            return read_instruction(await model([Message("user", prompt)]))
        except UnparsableReplyError as error:
            reason = str(error)
        except LLMError as error:
            reason = str(error)
            break
    context.log("merge.failed", **about, reason=reason)
    return None
