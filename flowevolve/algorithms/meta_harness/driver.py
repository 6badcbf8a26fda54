"""Runs one harness inside the sandbox. The source of this file is the program that is run, so it imports only the
standard library.

A harness has no model: its ``llm`` knows the replies that were given so far and stops the harness at a prompt without
one. What it asked goes back with the answers; the engine asks the model and runs the harness again with the replies. A
prompt has one reply for the whole evaluation, so a harness gets the same replies in every run.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
from collections.abc import Callable
from typing import Any

METHODS = ("predict", "learn_from_batch", "get_state", "set_state")
_TRACE = 1500
"""At most this many characters of a traceback are kept."""


class UnansweredError(BaseException):
    """Not an `Exception`, so that a harness that catches those does not catch this."""


class Asking:
    """The ``llm`` that a harness gets."""

    def __init__(self, replies: dict[str, str]) -> None:
        self.replies = replies
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> str:
        if not isinstance(prompt, str):
            raise TypeError(f"llm takes one text, not a {type(prompt).__name__}")
        prompt.encode()  # half a surrogate pair can't be sent: an error here is one of this prediction alone
        if prompt in self.replies:
            return self.replies[prompt]
        self.asked.append(prompt)
        raise UnansweredError


def load(harness: str) -> Any:  # noqa: ANN401 - whatever the harness defines
    """The class ``Memory`` of a harness."""
    names: dict[str, Any] = {"__name__": "harness"}
    seed()
    exec(compile(harness, "harness.py", "exec"), names)  # noqa: S102 - that is what this process is for
    return names["Memory"]


def check(harness: str, labels: list[str]) -> dict[str, Any]:
    """``problem``: what keeps the harness from being run, or None."""
    try:
        memory = load(harness)(Asking({}), labels)
        missing = [name for name in METHODS if not callable(getattr(memory, name, None))]
        problem = f"Memory has no method {', '.join(missing)}" if missing else None
        if not missing:
            load(harness)(Asking({}), labels).set_state(plain(memory.get_state()))
    except UnansweredError:
        problem = "llm can't be called before learn_from_batch or predict"
    except KeyError as error:
        problem = f"the file has no {error}" if error.args == ("Memory",) else trace()
    except Exception:  # noqa: BLE001 - the report is what the check is for
        problem = trace()
    return {"problem": problem}


def run(
    harness: str, labels: list[str], batches: list[list[dict[str, str]]], texts: list[str], replies: dict[str, str]
) -> dict[str, Any]:
    """Learn from the batches, then predict each text with an object of its own that holds what was learnt.

    In the result, ``problem`` says what ended the learning and ``learning`` holds the prompt that it waits for.
    Otherwise ``predictions`` has one entry per text, with its ``answer``, what it ``asked``, or its ``problem``.
    """
    asking = Asking(replies)
    try:
        kind = load(harness)
        memory = kind(asking, list(labels))
        for batch in batches:
            memory.learn_from_batch([dict(example) for example in batch])
        state = json.dumps(memory.get_state())
    except UnansweredError:
        return {"learning": asking.asked[:1], "predictions": []}
    except Exception:  # noqa: BLE001 - reported
        return {"problem": trace(), "learning": asking.asked[:1], "predictions": []}
    if asking.asked:
        return {"learning": asking.asked[:1], "predictions": []}
    return {"learning": [], "predictions": [predict(kind, replies, labels, state, text) for text in texts]}


def predict(
    kind: Callable[..., Any], replies: dict[str, str], labels: list[str], state: str, text: str
) -> dict[str, Any]:
    asking = Asking(replies)
    try:
        memory = kind(asking, list(labels))
        memory.set_state(json.loads(state))
        seed()
        said = memory.predict(text)
        answer = None if said is None else sendable(str(said))
    except UnansweredError:
        answer = None
    except Exception:  # noqa: BLE001 - reported
        return {"asked": asking.asked[:1], "problem": trace()}
    return {"asked": asking.asked[:1], "answer": answer}


def seed() -> None:
    """Seed random numbers, so that a harness draws the same ones in every run and for every text."""
    random.seed(0)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(0)


def plain(state: object) -> Any:  # noqa: ANN401 - JSON
    return json.loads(json.dumps(state))


def trace() -> str:
    return sendable(traceback.format_exc()[-_TRACE:])


def sendable(text: str) -> str:
    """The text without halves of surrogate pairs, with which the whole report could not be sent."""
    return text.encode("utf-8", "replace").decode()
