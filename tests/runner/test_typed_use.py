"""Programs as users write them who check types: that they are accepted is for mypy to say, which checks the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import flowevolve as fe
from flowevolve.tasks.metric import Ask, MetricTask

BUDGET = fe.Budget(proposals=1)


class Ticket(TypedDict):
    text: str
    label: str
    votes: int


TICKETS: list[Ticket] = [{"text": f"It crashes {n}.", "label": "bug", "votes": n} for n in range(6)]
TEXTS: list[dict[str, str]] = [{"text": ticket["text"], "label": ticket["label"]} for ticket in TICKETS]


def of_ticket(row: Ticket, output: str) -> float:
    return 1 / (1 + row["votes"]) if row["label"] in output else 0


def of_texts(row: dict[str, str], output: str) -> tuple[float, str]:
    return 0.5, f"The label is {row['label'].strip()}."


async def of_any(row: Mapping[str, object], output: str) -> bool:
    return str(row["label"]) in output


async def program(row: dict[str, str], ask: Ask) -> str:
    return await ask("prompt", row["text"])


def test_the_example_of_the_readme_has_its_types(tmp_path: Path) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_text("\n".join(map(json.dumps, TEXTS)))
    result = fe.optimize(
        prompt="Classify the ticket as bug, question or praise.",
        train=str(file),
        metric=lambda row, output: row["label"] in output.lower(),
        llm="simulated",
        clock="virtual",
        budget=BUDGET,
    )
    assert result.task == "prompt"


def test_the_metrics_rows_are_those_of_train() -> None:
    fe.optimize(
        prompt="p", train=TICKETS, metric=of_ticket, input="{text}", llm="simulated", clock="virtual", budget=BUDGET
    )
    fe.optimize(
        prompt="p",
        train=TEXTS[2:],
        val=TEXTS[:2],
        metric=of_texts,
        program=program,
        llm="simulated",
        clock="virtual",
        budget=BUDGET,
    )
    fe.optimize(prompt="p", train=TEXTS, metric=of_any, llm="simulated", clock="virtual", budget=BUDGET)
    fe.optimize(
        prompt="p",
        train=TEXTS,
        metric=lambda row, output: row["label"] in output,
        llm="simulated",
        clock="virtual",
        budget=BUDGET,
    )
    MetricTask("p", TEXTS, of_ticket)  # type: ignore[arg-type]  # rows of texts have no votes
    MetricTask("p", TICKETS, lambda row, output: row["votes"] > len(output), input="{text}")
