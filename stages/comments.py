"""Puts people's comments on examples and candidates (`flowevolve.Comment`) into the prompts for new candidates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from flowevolve.core.context import StageContext
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Rollout
from flowevolve.core.templates import Prompt
from flowevolve.prompts.comments import with_comments, with_remarks


def commented(rollouts: Sequence[Rollout], context: StageContext, parent: Candidate | None = None) -> Sequence[Rollout]:
    """The rollouts for a reflection, with the comments on their examples added to their feedback. The comments on the
    parent are added to the feedback of the first rollout that has calls.
    """
    if not context.comments:
        return rollouts
    of_examples = _by_example(context)
    shown = [_remarked(each, of_examples.get(each.example_id, ()), "this example") for each in rollouts]
    of_parent = [each.text for each in context.comments if parent is not None and each.candidate == parent.id]
    first = next((place for place, each in enumerate(shown) if each.calls), 0)
    return [
        _remarked(each, of_parent if place == first else (), "the text that is used here")
        for place, each in enumerate(shown)
    ]


def commented_prompt(prompt: Prompt, context: StageContext, parents: Collection[str] | None) -> Prompt:
    """A prompt without a place for single rollouts, with the comments on all examples and on the candidates with these
    ids (None: on all candidates) added to it.
    """
    comments = [
        (f"example {each.example}" if each.candidate is None else f"candidate {each.candidate}", each.text)
        for each in context.comments
        if each.candidate is None or parents is None or each.candidate in parents
    ]
    return with_comments(prompt, comments)


def _by_example(context: StageContext) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in context.comments:
        if each.example is not None:
            found.setdefault(each.example, []).append(each.text)
    return found


def _remarked(rollout: Rollout, remarks: Sequence[str], of: str) -> Rollout:
    score = rollout.score
    return replace(rollout, score=replace(score, feedback=with_remarks(score.feedback, remarks, of)))
