"""Evolve a DSPy program of two predictors in the stream: `python examples/dspy_program.py`. It needs no server and no
key, and takes seconds.

The "model" works in the manners that its instructions ask for, and the metric wants a certain manner from each
predictor.
"""

from __future__ import annotations

import json
import re

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, Usage

from flowevolve.compat.dspy import GEPA

MANNERS = {"outline": ["short", "ordered", "complete"], "write": ["friendly", "plain", "precise"]}


class StandIn:
    """An engine in place of a model. It answers with the manners in its instruction; when it reflects, it adds one."""

    def complete(self, request: Request) -> Response:
        system = request.system if isinstance(request.system, str) else "".join(part.text for part in request.system)
        prompt = system + "".join(message.text or "" for message in request.messages)
        usage = Usage(input_tokens=0, output_tokens=0, total_tokens=0)
        message = Message.assistant([TextPart(self.answer(prompt))])
        return Response(id=None, model="stand-in", message=message, finish_reason="stop", usage=usage)

    def answer(self, prompt: str) -> str:
        manners = re.findall(r"Work like this:([\w ]*)", prompt)[-1]
        if "new_instruction" in prompt:
            missed = re.findall(r"be <(\w+)>", prompt)[0]
            return json.dumps({"new_instruction": f"Work like this:{manners} {missed}"})
        field = re.findall(r"starting with the field `\[\[ ## (\w+) ## \]\]`", prompt)[0]
        return f"[[ ## {field} ## ]]\n{manners.strip() or 'somehow'}\n\n[[ ## completed ## ]]"


class Letter(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.outline = dspy.Predict(dspy.Signature("topic -> points", "Work like this:"))
        self.write = dspy.Predict(dspy.Signature("topic, points -> letter", "Work like this:"))

    def forward(self, topic: str) -> dspy.Prediction:
        points = self.outline(topic=topic).points
        return dspy.Prediction(points=points, letter=self.write(topic=topic, points=points).letter)


def metric(gold, pred, trace=None, pred_name=None, pred_trace=None):  # noqa: ANN001, ANN201  # as dspy shows them
    done = {"outline": pred.points.split(), "write": pred.letter.split()}
    wanted = {name: manners[gold.number % 3] for name, manners in MANNERS.items()}
    missed = {name: manner for name, manner in wanted.items() if manner not in done[name]}
    feedback = f"It should be <{missed[pred_name]}>." if pred_name in missed else "Fine."
    return dspy.Prediction(score=1 - len(missed) / (len(wanted) + 1), feedback=feedback)


def main() -> None:
    dspy.configure(lm=dspy.LM("stand-in", engine=StandIn(), cache=False))
    topics = [dspy.Example(topic=f"topic {number}", number=number).with_inputs("topic") for number in range(6)]
    gepa = GEPA(
        metric,
        reflection_lm=dspy.LM("stand-in", engine=StandIn(), cache=False),
        max_metric_calls=300,
        num_threads=8,
        track_stats=True,
    )
    program = gepa.compile(Letter(), trainset=topics, valset=topics)
    stats = program.detailed_results
    texts = {name: predictor.signature.instructions for name, predictor in program.named_predictors()}
    print(f"score {stats.val_aggregate_scores[0]:.2f} -> {stats.val_aggregate_scores[stats.best_idx]:.2f}: {texts}")


if __name__ == "__main__":
    main()
