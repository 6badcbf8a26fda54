"""Prompts for plans: several ways to solve a task in one call, and the program that one of them describes.

Controlled Self-Evolution (arXiv 2601.07348), §4.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve.prompts.programs import (
    ADVICE_HEADING,
    HOW_HEADING,
    PROGRAM_HEADING,
    REPLY_HEADING,
    reply_instructions,
    shown_files,
    task_section,
)
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.json_replies import read_array, texts

PLAN_TITLE = "# Plan different programs"
IMPLEMENT_TITLE = "# Write a program to a plan"


def plan_prompt(statement: str, program: Mapping[str, str], count: int) -> str:
    """Ask for ``count`` plans. ``program`` (files by name) is an example of the form that programs have."""
    return f"""{PLAN_TITLE}

Several programmers are going to write a program for the task below, each to a plan. Make the plans.

{task_section(statement)}

{PROGRAM_HEADING}
{_example(program)}

{REPLY_HEADING}
- {count} plans of which each goes its own way: another method, or other data structures, not other numbers.
- Of each plan: how the method works, in which order it goes about the task, what it stores, and how its time and memory
  grow with the size of the input. No code.
- Leave out what is sure to be too slow or to use too much memory.
- Reply with a JSON array of exactly {count} strings inside one fenced block, and nothing after it."""


def read_plans(reply: str, count: int) -> tuple[str, ...]:
    """The first ``count`` different plans of a reply, which may have fewer.

    Raises:
        UnparsableReplyError: if it is no JSON array, or has no text in it.
    """
    return texts(read_array(reply), "plans")[:count]


def implement_prompt(statement: str, program: Mapping[str, str], plan: str, *, advice: str = "") -> str:
    """Ask for the whole program that a plan describes; if the plan is empty, for any program.

    ``program`` (files by name) is an example of the form that programs have.
    """
    sections = [
        IMPLEMENT_TITLE,
        f"{HOW_HEADING}\n{fence(plan.strip() or 'By whatever method suits the task best.')}",
        task_section(statement),
        f"{PROGRAM_HEADING}\n{_example(program)}",
    ]
    if advice:
        sections.append(f"{ADVICE_HEADING}\n{fence(advice)}")
    sections.append(
        f"""{REPLY_HEADING}
- Carry the plan through to the end. Where it is silent, choose what is correct first and fast second.
- Keep the names and parameters of the functions that the task calls.
- The program is run as it stands, with a limit on its time: no placeholders, no questions.

{reply_instructions(program, "whole")}"""
    )
    return "\n\n".join(sections)


def _example(program: Mapping[str, str]) -> str:
    return f"It shows the form of a program for this task; its method need not be kept.\n{shown_files(program)}"
