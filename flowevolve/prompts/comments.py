"""Shows in prompts what people who watch a run have said about examples and candidates. If nobody has said anything, a
prompt is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.core.templates import Prompt
from flowevolve.prompts.reading.fences import fence

COMMENTS_HEADING = "## What people say"


def with_remarks(feedback: str, remarks: Sequence[str], of: str) -> str:
    """Feedback, followed by what people have said; ``of`` names what they said it about, such as ``this example``."""
    if not remarks:
        return feedback
    said = "\n".join(remarks)
    return f"{feedback}\n\nA person who has looked at {of} says:\n{said}".lstrip()


def with_comments(prompt: Prompt, comments: Sequence[tuple[str, str]]) -> Prompt:
    """A prompt, followed by comments. Each comment is a pair: what it is about, in words, and its text."""
    if not comments:
        return prompt
    said = "\n\n".join(f"Of {subject}:\n{fence(text)}" for subject, text in comments)
    heading = f"{COMMENTS_HEADING}\n\nPeople who watch this search have commented. Go by what they say."
    return Prompt(f"{prompt}\n\n{heading}\n\n{said}", prompt.template)
