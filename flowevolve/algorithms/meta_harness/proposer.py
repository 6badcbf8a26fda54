"""The proposer: reads earlier runs and writes harnesses (Meta-Harness, arXiv 2603.28052), by plain LLM calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from flowevolve._util.json_types import JSON
from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig
from flowevolve.algorithms.meta_harness.evaluator import Evaluator
from flowevolve.algorithms.meta_harness.trial import Trials
from flowevolve.algorithms.meta_harness.view import FRONTIER, SUMMARY, View
from flowevolve.core.context import StageContext
from flowevolve.core.model import Message
from flowevolve.core.templates import Prompt, Templates
from flowevolve.prompts.harnesses import HarnessBrief, harness_prompt
from flowevolve.prompts.reading.json_replies import tool_calls
from flowevolve.prompts.reading.programs import python_programs
from flowevolve.tasks.labelling import BASELINES, HarnessTask

ROLE = "proposer"
_CALLS = 8
"""At most this many tools are used per reply."""


class Proposer(Protocol):
    """Writes sources of harnesses, best first; none when it has no idea. A coding agent can be one."""

    async def write(self, view: View, context: StageContext) -> Sequence[str]:
        """Raises: LLMError, if a call fails for good."""
        ...


class FileReader:
    """A chat with four tools: list, read, search and try. A reply that has Python blocks and tries none of them ends
    it.
    """

    def __init__(self, task: HarnessTask, config: MetaHarnessConfig, evaluator: Evaluator) -> None:
        self._task = task
        self._config = config
        self._trials = Trials(task, config, evaluator)

    async def write(self, view: View, context: StageContext) -> Sequence[str]:
        messages = [Message("user", self._instruction(context.templates))]
        tried = 0
        for left in reversed(range(self._config.rounds)):
            reply = await context.chat(ROLE, messages)
            sources = python_programs(reply.text, was_cut=reply.was_cut)
            calls = tool_calls(reply.text)[:_CALLS]
            trial = next((call for call in calls if call["tool"] == "try"), None)
            if sources and (trial is None or not left):
                return sources
            answers = [_use(view, call) for call in calls if call is not trial]
            if trial is not None and sources:
                answers.append(await self._trials.run(sources[0], str(trial.get("set", "")), tried, context))
                tried += 1
            elif trial is not None:
                answers.append("There is no ```python block in the reply that could be tried.")
            if reply.was_cut:
                answers.append("Your reply breaks off, as it reached the limit of tokens: write less.")
            told = "\n\n".join(answers) or "That was neither a tool as a JSON object nor a ```python block."
            last = "\n\nWrite your harnesses now: this is your last reply." if left == 1 else ""
            messages += [Message("assistant", reply.text), Message("user", f"{told}{last}")]
        return ()

    def _instruction(self, templates: Templates) -> Prompt:
        config = self._config
        brief = HarnessBrief(
            candidates=config.candidates,
            batch=config.batch,
            rounds=config.rounds,
            run_seconds=config.run_seconds,
            calls=config.calls_per_text,
            prompt_chars=config.prompt_chars,
            tries=config.tries,
            try_rows=config.try_rows,
            summary=SUMMARY,
            frontier=FRONTIER,
            example=BASELINES["few_shot"],
        )
        return harness_prompt(templates, list(self._task.sets.values()), brief)


def _use(view: View, call: dict[str, JSON]) -> str:
    argument = str(call.get("path", call.get("text", "")))
    match call["tool"]:
        case "list":
            answer = view.list(argument)
        case "read":
            answer = view.read(argument)
        case "search":
            answer = view.search(str(call.get("text", argument)))
        case _:
            answer = "there is no such tool; there are list, read, search and try"
    return f"{json.dumps(call, ensure_ascii=False)}\n{answer}"
