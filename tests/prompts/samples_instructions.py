"""The prompts about instructions, playbooks and harnesses, written from fixed data: a text for each template."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flowevolve.core.artifact import Artifact
from flowevolve.core.task import Dataset, Example
from flowevolve.core.templates import Prompt, Templates
from flowevolve.prompts.harnesses import HarnessBrief, harness_prompt
from flowevolve.prompts.playbook import (
    CheckedAnswer,
    compare_prompt,
    curate_prompt,
    gather_prompt,
    lesson_prompt,
    merge_prompt as merge_notes_prompt,
)
from flowevolve.prompts.reflection import (
    ReflectionExample,
    judge_prompt,
    merge_edits_prompt,
    merge_prompt,
    reflect_on,
)
from flowevolve.tasks.labelling import BASELINES, labelled_set

ARTIFACT = Artifact({"answer": "Answer the question.", "search": "Write a query for a search engine."})
EXAMPLES = [
    ReflectionExample({"question": "When was the bridge opened?"}, "In 1932.", "Right.", 1.0),
    ReflectionExample(
        {"question": "How long is it?", "context": "It spans 503 m."},
        "It is long.",
        "Wrong: the length was asked for, in metres (503).",
        0.0,
        "long",
    ),
]
CHECKED = CheckedAnswer(
    "What is the margin, if revenue is 80 and costs are 60?",
    "The margin is 0.33.",
    "Wrong: the answer is 0.25.",
    0.0,
    right=False,
    used="- [for-00001] Margins are given as a share, not in per cent.",
)
ROWS = [Example("1", {"text": "itchy red skin", "label": "rash"}), Example("2", {"text": "cough", "label": "flu"})]
SETS = [labelled_set("symptoms", Dataset(ROWS, ROWS), ["text"], "label")]
BRIEF = HarnessBrief(
    candidates=3,
    batch=8,
    rounds=8,
    run_seconds=60,
    calls=4,
    prompt_chars=40_000,
    tries=2,
    try_rows=8,
    summary="summary.txt",
    frontier="frontier.txt",
    example=BASELINES["few_shot"],
)
LESSONS = ["Divide the profit by the revenue.", "Give two decimals."]

INSTRUCTION_SAMPLES: Mapping[str, Callable[[Templates], Prompt]] = {
    "reflect": lambda templates: reflect_on(templates, "answer", ARTIFACT, EXAMPLES),
    "judge": lambda templates: judge_prompt(
        templates,
        {"answer": "Answer the question."},
        {"answer": "Answer the question in one word."},
        [{"answer": "Answer the question. Give units."}],
        {"answer": "Answer the question. Give units."},
    ),
    "merge": lambda templates: merge_prompt(
        templates, "answer", "Answer the question.", ["Answer the question. Give units.", "Answer in one word."]
    ),
    "merge_edits": lambda templates: merge_edits_prompt(
        templates,
        "answer",
        "Answer the question. Give units.",
        [
            ("Answer the question. Give units.", "Answer the question. Give SI units."),
            ("Answer the question.", "Answer the question in one word."),
        ],
    ),
    "lesson": lambda templates: lesson_prompt(templates, CHECKED),
    "gather": lambda templates: gather_prompt(templates, [LESSONS, LESSONS[:1]]),
    "curate": lambda templates: curate_prompt(
        templates,
        "### formulas\n- [for-00001] Margins are given as a share. (helpful 2, harmful 1)",
        LESSONS,
        ["strategies", "formulas"],
        (40, 8000),
        ["Error: the profit was divided by the costs."],
    ),
    "merge_notes": lambda templates: merge_notes_prompt(templates, LESSONS),
    "compare": lambda templates: compare_prompt(templates, LESSONS, ["Give three decimals."]),
    "harness": lambda templates: harness_prompt(templates, SETS, BRIEF),
    "playbook": lambda templates: templates.write("playbook", lambda shorten: {"playbook": CHECKED.used}),
    "last_try": lambda templates: templates.write("last_try", lambda shorten: {"reflection": LESSONS[0]}),
    "cite": lambda templates: templates.write("cite", lambda shorten: {}),
}
"""By the name of the template, what writes a prompt from it."""
