"""Predicting runs: answers drawn from recorded ones, on a server with a measured profile."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bench._lib.methods.figures import figures
from bench._lib.methods.virtual import RecordingBackend, evolve_at
from bench._lib.methods.workloads import WORKLOADS, small
from bench.prediction.known import Known
from bench.prediction.measurements import (
    Compared,
    Plan,
    as_json,
    cells,
    predict,
    proposals_of,
    seconds_for,
    summary,
)
from bench.prediction.replies import RecordedReplies, read_exchanges
from bench.prediction.section import answer, gains, section
from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatRequest, Message
from flowevolve.prompts.reflection import REFLECT_TITLE
from flowevolve.sim.profiles import BatchingProfile, OutputLength

PROFILE = BatchingProfile(OutputLength(0, 0, 8192), ((1, 0.0135), (8, 0.0237)), 0.0007, 0.0004, 64, 2900, 1e-6)


def exchange(asked: str, told: str | None, tokens: int = 7) -> JSON:
    answer: JSON = None if told is None else {"text": told, "tokens": tokens}
    return {"messages": [{"role": "user", "content": asked}], "answer": answer, "seed": 3}


EXCHANGES = read_exchanges(
    json.dumps(
        [
            exchange("Which river?", "the Rhine", 3),
            exchange("Which hill?", "none", 9),
            exchange("Which hill?", None),
            exchange(f"{REFLECT_TITLE} and so on", "```\nName the river.\n```", 40),
        ]
    ).encode()
)


@pytest.mark.parametrize(
    ("asked", "told", "tokens"),
    [("Which river?", "the Rhine", 3), ("Which hill?", "none", 9), (f"{REFLECT_TITLE} of others", "```\nName", 40)],
)
def test_a_request_gets_an_answer_to_its_like_with_the_tokens_that_were_counted(
    asked: str, told: str, tokens: int
) -> None:
    replies = RecordedReplies(EXCHANGES)
    text = replies.reply(ChatRequest("m", (Message("user", asked),)), random.Random(0))
    assert text.startswith(told)
    assert replies.output.draw(random.Random(0), 1000) == tokens


def test_an_example_that_was_never_asked_gets_some_answer() -> None:
    replies = RecordedReplies(EXCHANGES)
    assert replies.reply(ChatRequest("m", (Message("user", "Which lake?"),)), random.Random(0)) in ("the Rhine", "none")


def test_a_run_is_predicted_from_what_is_known(tmp_path: Path) -> None:
    Known(PROFILE, EXCHANGES).write(tmp_path / "known.json")
    profile, replies = Known.read(f"{tmp_path / 'known.json'}").model()
    run = evolve_at(
        RecordingBackend(profile, replies),
        "plain",
        small(WORKLOADS["aime"]),
        concurrency=8,
        seed=0,
        seconds=60,
        max_tokens=48,
    )
    found = figures(run)
    assert found.proposals_per_min > 0
    assert {span.tokens for span in run.spans if span.tokens is not None} <= {3, 9, 40}


def test_a_run_is_as_long_as_its_proposals_need() -> None:
    known = Known(PROFILE, EXCHANGES)
    plan = Plan("aime", (4, 32), 20.0, proposals=60, methods=("plain",))
    few, many = cells(known, plan, "simulated")
    assert few.seconds > many.seconds > 20
    runs = predict(known, [few, many], plan, "simulated")
    assert all(50 < figure.proposals < 75 for cell in (few, many) for figure in runs[cell])


def test_what_proposes_in_rounds_has_time_for_six() -> None:
    plan = Plan("aime", (4,), 60.0, proposals=50)
    assert [proposals_of(method, plan) for method in ("gepa_sync", "gepa_pxn_4x4", "stream")] == [50, 96, 50]
    assert seconds_for(96, 40.0, least=60.0) == 180.0
    assert seconds_for(96, 400.0, least=60.0) == 60.0
    assert seconds_for(96, 0.0, least=60.0) == 60.0


def test_the_page_names_what_is_beyond_the_goal() -> None:
    def compared(method: str, predicted: float, in_flight: float = 4.0) -> Compared:
        values = {"proposals_per_min": 10.0, "output_tokens_per_s": 100.0, "mean_in_flight": in_flight}
        expected = {**values, "proposals_per_min": predicted}
        return Compared(method, 16, 150.0, values, expected, {name: [value] for name, value in expected.items()}, 20)

    runs = [compared("plain", 11.0), compared("gepa_sync", 14.0), compared("stream", 11.0, in_flight=15.0)]
    content = {
        "model": "smollm2-135m",
        "check": {"error": 0.04},
        "exchanges": 500,
        "plan": {"predictions": 3, "seconds": 150.0, "proposals": 60, "workload": "aime"},
        "goal": {"median": 0.15, "worst": 0.3},
        "runs": [as_json(run) for run in runs],
        "summary": summary(runs),
    }
    page = section(content)
    assert "Beyond the goal at worst: gepa 0.1.4, synchronous with 16 in flight, proposals a minute (+40%)." in page
    assert "| proposals a minute | 10 % | 40 % | missed |" in page
    assert "In 1 of the 3 runs on vLLM nearly all of the requests that could be were in flight" in page
    assert gains(content) == "1.0 times with 16"
    assert "| requests in flight | 0 % | 0 % | met |" in page
    assert answer(content) == (
        "in proposals a minute off by 10 % in the median and by 40 % at worst; the defaults' gain over synchronous gepa "
        "was predicted as 0.8 (measured 1.0)"
    )
