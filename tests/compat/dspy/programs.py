"""A model that answers by hash, a program of two predictors on it, and a metric with feedback for each."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, Usage

TRAIN = [dspy.Example(question=f"t{number}", answer="?").with_inputs("question") for number in range(7)]
VAL = [dspy.Example(question=f"v{number}", answer="?").with_inputs("question") for number in range(5)]


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]


class Engine:
    """Answers every field that is asked for with a hash of the prompt. Counts requests, and how many are open."""

    def __init__(self, spoil: Callable[[str], str | None] = lambda _: None) -> None:
        self.spoil = spoil
        self.asked: list[str] = []
        self.most = 0
        self._open = 0
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        system = request.system if isinstance(request.system, str) else "".join(part.text for part in request.system)
        prompt = system + "\n" + "\n".join(message.text or "" for message in request.messages)
        with self._lock:
            self.asked.append(prompt)
            self._open += 1
            self.most = max(self.most, self._open)
        text = self.spoil(prompt) or self._answer(prompt)
        with self._lock:
            self._open -= 1
        usage = Usage(input_tokens=1, output_tokens=1, total_tokens=2)
        message = Message.assistant([TextPart(text)])
        return Response(id=None, model="hash", message=message, finish_reason="stop", usage=usage)

    def _answer(self, prompt: str) -> str:
        if "`new_instruction`" in prompt or '"new_instruction"' in prompt:
            return json.dumps({"new_instruction": f"Instruction {digest(prompt)}"})
        fields = re.findall(r"starting with the field `\[\[ ## (\w+) ## \]\]`", prompt)
        return f"[[ ## {fields[-1]} ## ]]\n{digest(prompt)}\n\n[[ ## completed ## ]]"


def model(**arguments: Any) -> dspy.LM:
    return dspy.LM("hash", engine=Engine(**arguments), cache=False, num_retries=0)


class Program(dspy.Module):
    """Drafts, then answers."""

    def __init__(self) -> None:
        super().__init__()
        self.draft = dspy.Predict(dspy.Signature("question -> notes", "Take notes."))
        self.reply = dspy.Predict(dspy.Signature("question, notes -> answer", "Answer."))

    def forward(self, question: str) -> dspy.Prediction:
        return self.reply(question=question, notes=self.draft(question=question).notes)


class Twice(Program):
    """Calls a predictor two times."""

    def forward(self, question: str) -> dspy.Prediction:
        return super().forward(self.draft(question=question).notes)


class Metric:
    """Scores one of 0, 0.1, … 1 by the answer; says to each predictor who it is. Notes what it is told, and where."""

    def __init__(self) -> None:
        self.predictors: Counter[str | None] = Counter()
        self.traced: list[Any] = []
        self.models: set[str] = set()

    def __call__(
        self, gold: Any, pred: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
    ) -> Any:
        self.predictors[pred_name] += 1
        self.models.add(dspy.settings.lm.model)
        if pred_trace is not None:
            self.traced.append((pred_name, pred_trace))
        score = int(digest(f"{gold.question} {pred.answer}"), 16) % 11 / 10
        return dspy.Prediction(score=score, feedback=f"{pred_name}: {score} for {gold.question}")


def texts(program: Any) -> dict[str, str]:
    return {name: predictor.signature.instructions for name, predictor in program.named_predictors()}
