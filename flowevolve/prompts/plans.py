"""Prompts for plans: several ways to solve a task in one call, and the program that one of them describes.

Controlled Self-Evolution (arXiv 2601.07348), §4.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve.core.templates import Prompt, Templates
from flowevolve.prompts.programs import common_fields, reply_instructions, shown_files
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.json_replies import read_array, texts

PLAN_TITLE = "# Plan different programs"
IMPLEMENT_TITLE = "# Write a program to a plan"


def plan_prompt(templates: Templates, statement: str, program: Mapping[str, str], count: int) -> Prompt:
    """Ask for ``count`` plans. ``program`` (files by name) is an example of the form that programs have."""
    return templates.write(
        "plan",
        lambda shorten: {
            **common_fields(templates, statement),
            "program": shown_files(program),
            "count": str(count),
        },
    )


def read_plans(reply: str, count: int) -> tuple[str, ...]:
    """The first ``count`` different plans of a reply, which may have fewer.

    Raises:
        UnparsableReplyError: if it is no JSON array, or has no text in it.
    """
    return texts(read_array(reply), "plans")[:count]


def implement_prompt(
    templates: Templates, statement: str, program: Mapping[str, str], plan: str, *, advice: str = ""
) -> Prompt:
    """Ask for the whole program that a plan describes; if the plan is empty, for any program.

    ``program`` (files by name) is an example of the form that programs have.
    """
    return templates.write(
        "implement",
        lambda shorten: {
            **common_fields(templates, statement),
            "program": shown_files(program),
            "advice": fence(shorten(advice)) if advice else "",
            "plan": fence(plan.strip() or templates.text("any_method")),
            "form": reply_instructions(templates, program, "whole"),
        },
    )
