"""Evolve with a gepa adapter in the stream: `python examples/gepa_adapter.py`. It needs no server and no key, and takes
a second.

The "model" answers in the tone that its instruction asks for, and the metric wants every tone on its list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gepa.core.adapter import EvaluationBatch

from flowevolve.compat.gepa import optimize

TONES = ["brief", "friendly", "formal", "playful", "precise", "warm"]


class ToneAdapter:
    """Scores an instruction by the tones it asks for. It keeps nothing between calls, so threads may share it."""

    def evaluate(
        self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Any, Any]:
        scores = [float(tone in candidate["instruction"]) for tone in batch]
        traces = [{"wanted": tone, "score": score} for tone, score in zip(batch, scores, strict=True)]
        return EvaluationBatch(outputs=list(batch), scores=scores, trajectories=traces if capture_traces else None)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: EvaluationBatch[Any, Any], components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        missing = [trace["wanted"] for trace in eval_batch.trajectories or [] if not trace["score"]]
        records = [{"Inputs": "a question", "Feedback": f"the answer was not <{tone}>"} for tone in missing]
        return dict.fromkeys(components_to_update, records)


def reflect(prompt: str | list[dict[str, Any]]) -> str:
    """Stands in for a model: adds one of the missed tones to the instruction in its prompt."""
    instruction = re.findall(r"Answer[^\n`]*", str(prompt))[0]
    missed = re.findall(r"not <(\w+)>", str(prompt))
    return f"```\n{instruction} {missed[0]}\n```"


def main() -> None:
    result = optimize(
        seed_candidate={"instruction": "Answer:"},
        trainset=TONES,
        valset=TONES,
        adapter=ToneAdapter(),
        reflection_lm=reflect,
        max_metric_calls=400,
        adapter_concurrency=2,
    )
    before, after = result.val_aggregate_scores[0], result.val_aggregate_scores[result.best_idx]
    print(f"score {before:.2f} -> {after:.2f}: {result.best_candidate}")


if __name__ == "__main__":
    main()
