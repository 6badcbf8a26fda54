"""The proposer: reads earlier runs and writes harnesses (Meta-Harness, arXiv 2603.28052), by plain LLM calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from flowevolve._util.json_types import JSON
from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig
from flowevolve.algorithms.meta_harness.view import FRONTIER, SUMMARY, View
from flowevolve.core.context import StageContext
from flowevolve.core.model import Message
from flowevolve.prompts.reading.json_replies import tool_calls
from flowevolve.prompts.reading.programs import python_programs
from flowevolve.prompts.reflection import HARNESS_TITLE
from flowevolve.tasks.labelling import HarnessTask

ROLE = "proposer"
_CALLS = 8
"""File tools that are answered per reply."""


class Proposer(Protocol):
    """Writes sources of harnesses, best first; none when it has no idea. A coding agent can be one."""

    async def write(self, view: View, context: StageContext) -> Sequence[str]:
        """Raises: LLMError, if a call fails for good."""
        ...


class FileReader:
    """A chat with three tools: list, read and search. A reply with Python blocks ends it."""

    def __init__(self, task: HarnessTask, config: MetaHarnessConfig) -> None:
        self._task = task
        self._config = config

    async def write(self, view: View, context: StageContext) -> Sequence[str]:
        messages = [Message("user", self._instruction())]
        for left in reversed(range(self._config.rounds)):
            reply = (await context.chat(ROLE, messages)).text
            sources = python_programs(reply)
            if sources:
                return sources
            answer = "\n\n".join(_use(view, call) for call in tool_calls(reply)[:_CALLS])
            told = answer or "That was neither a tool as a JSON object nor a ```python block."
            last = "\n\nWrite your harnesses now: this is your last reply." if left == 1 else ""
            messages += [Message("assistant", reply), Message("user", f"{told}{last}")]
        return ()

    def _instruction(self) -> str:
        sets = "\n".join(
            f"- {each.name}: {len(each.labels)} labels, {len(each.data.train)} examples to learn from"
            for each in self._task.sets.values()
        )
        return f"""{HARNESS_TITLE}
A harness is the code around a model that classifies texts. Write up to {self._config.candidates} new ones that are more
accurate than those before, or as accurate with shorter prompts.

Data sets:
{sets}

A harness is one Python file, standard library only, with this class:

class Memory:
    def __init__(self, llm, labels): ...    # llm(prompt) returns the model's reply; labels is a list of texts
    def learn_from_batch(self, batch): ...  # batch: a list of {{"text": ..., "label": ...}}; called once per batch
    def predict(self, text): ...            # returns a label; what it changes in the object is lost
    def get_state(self): ...                # what was learnt, as JSON
    def set_state(self, state): ...         # called on a new object before predict

It has no network and no files, a prompt that is repeated has the same reply, and it must do the same whenever it is
run. At most {self._config.calls_per_text} calls of llm one after another per text, with prompts of at most
{self._config.prompt_chars} characters.

Earlier harnesses, their scores and mistakes are in files: {SUMMARY}, {FRONTIER}, harnesses/ID.py, traces/ID.txt
(mistakes) and reports/ID.txt (why a harness was invalid). To look, answer with JSON objects, one per line:
{{"tool": "list", "path": ""}}
{{"tool": "read", "path": "{SUMMARY}"}}
{{"tool": "search", "text": "..."}}
You have {self._config.rounds} replies. To end, answer with one ```python block for each harness."""


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
            answer = "there is no such tool; there are list, read and search"
    return f"{json.dumps(call, ensure_ascii=False)}\n{answer}"
