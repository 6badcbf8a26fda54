"""What people who watch a run have said of examples and candidates, as prompts show it. A prompt about which nobody has
said anything stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.core.templates import Prompt
from flowevolve.prompts.reading.fences import fence

COMMENTS_HEADING = "## What people say"


def with_remarks(feedback: str, remarks: Sequence[str], of: str) -> str:
    """Feedback with what people have said beside it; ``of`` is what they have said it of, such as ``this example``."""
    if not remarks:
        return feedback
    said = "\n".join(remarks)
    return f"{feedback}\n\nA person who has looked at {of} says:\n{said}".lstrip()


def with_comments(prompt: Prompt, comments: Sequence[tuple[str, str]]) -> Prompt:
    """A prompt with comments behind it, each with what it is about, in words."""
    if not comments:
        return prompt
    said = "\n\n".join(f"Of {subject}:\n{fence(text)}" for subject, text in comments)
    heading = f"{COMMENTS_HEADING}\n\nPeople who watch this search have commented. Go by what they say."
    return Prompt(f"{prompt}\n\n{heading}\n\n{said}", prompt.template)
