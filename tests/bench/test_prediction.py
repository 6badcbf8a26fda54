"""Predicting runs: answers as long as recorded ones, on a server with a measured profile."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientSession

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
from bench.prediction.replies import RecordedLengths, read_exchanges, words
from bench.prediction.section import answer, gains, section, wrong_side
from bench.prediction.worded import worded
from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatRequest, Message
from flowevolve.prompts.reflection import REFLECT_TITLE
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import BatchingProfile, OutputLength
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

PROFILE = BatchingProfile(OutputLength(0, 0, 8192), ((1, 0.0135), (8, 0.0237)), 0.0007, 0.0004, 64, 2900, 1e-6)


def exchange(asked: str, tokens: int | None) -> JSON:
    answer: JSON = None if tokens is None else {"text": "as the model put it", "tokens": tokens}
    return {"messages": [{"role": "user", "content": asked}], "answer": answer, "seed": 3}


EXCHANGES = read_exchanges(
    json.dumps(
        [
            exchange("Which river?", 3),
            exchange("Which hill?", 9),
            exchange("Which hill?", None),
            exchange(f"{REFLECT_TITLE} and so on", 40),
        ]
    ).encode()
)


@pytest.mark.parametrize(
    ("asked", "tokens"),
    [("Which river?", {3}), ("Which hill?", {9}), (f"{REFLECT_TITLE} of others", {40}), ("Which lake?", {3, 9})],
)
def test_an_answer_is_as_long_as_a_recorded_one_to_its_like(asked: str, tokens: set[int]) -> None:
    lengths = RecordedLengths(EXCHANGES)
    request = ChatRequest("m", (Message("user", asked),))
    found = []
    for seed in range(20):
        assert lengths.reply(request, random.Random(seed)) == words(request)
        found.append(lengths.output.draw(random.Random(0), 1000))
    assert set(found) == tokens


def test_words_depend_on_what_is_asked_and_the_seed_alone() -> None:
    first, second = (ChatRequest("m", (Message("user", "Which river?"),), seed=seed) for seed in (1, 2))
    assert words(first) == words(replace(first, model="another", max_tokens=5))
    assert words(first) != words(second)


@pytest.mark.anyio
async def test_a_real_servers_answers_get_the_words_and_keep_their_tokens() -> None:
    backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILE)
    asked = {"model": backend.model, "messages": [{"role": "user", "content": "Write a note."}], "max_tokens": 4}
    async with serve(backend) as real, worded(real) as url, ClientSession() as session:
        async with session.post(f"{url}/chat/completions", json=asked) as response:
            answer = await response.json()
        async with session.post(f"{url}/chat/completions", json={**asked, "model": "missing"}) as response:
            refused = response.status
        async with session.get(f"{url.removesuffix('/v1')}/metrics") as response:
            metrics = await response.text()
    (choice,) = answer["choices"]
    assert choice["message"]["content"] == words(ChatRequest("", (Message("user", "Write a note."),)))
    assert choice["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == 4
    assert refused == 404
    assert "vllm:generation_tokens_total" in metrics


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
    few, many = cells(known, plan)
    assert few.seconds > many.seconds > 20
    runs = predict(known, [few, many], plan)
    assert all(50 < runs[cell].proposals < 75 for cell in (few, many))


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
        return Compared(method, 16, 150.0, values, expected, 20)

    runs = [compared("plain", 11.0), compared("gepa_sync", 14.0), compared("stream", 11.0, in_flight=15.0)]
    content = {
        "model": "smollm2-135m",
        "check": {"error": 0.04},
        "exchanges": 500,
        "plan": {"seconds": 150.0, "proposals": 60, "workload": "aime"},
        "goal": {"median": 0.15, "worst": 0.3},
        "runs": [as_json(run) for run in runs],
        "summary": summary(runs),
    }
    page = section(content)
    assert "Beyond the goal at worst: gepa 0.1.4, synchronous with 16 in flight, proposals a minute (+40.0%)." in page
    within = section({**content, "runs": [as_json(compared("plain", 11.0))]})
    assert (
        "No single figure is beyond the goal at worst. Furthest off: ours, `plain` with 16 in flight, proposals a minute "
        "(+10.0%)." in within
    )
    assert wrong_side(content) == "", "both make as many, so that neither is ahead"
    ahead = [as_json(compared("gepa_sync", 14.0)), as_json(compared("stream", 11.0))]
    ahead[1]["measured"] = {"proposals_per_min": 12.0}
    assert "With 16 in flight it was foretold wrongly whether" in wrong_side({**content, "runs": ahead})
    ahead[1]["measured"] = {"proposals_per_min": 10.3}
    assert wrong_side({**content, "runs": ahead}) == "", "that is as many, but for chance"
    assert "| proposals a minute | 10 % | 40 % | missed |" in page
    assert "In 1 of the 3 runs on vLLM nearly all of the requests that could be were in flight" in page
    assert gains(content) == "1.0"
    assert "| requests in flight | 0 % | 0 % | met |" in page
    assert answer(content) == (
        "with the same simulated words on both sides, in proposals a minute off by 10 % in the median and by 40 % at "
        "worst; the defaults' gain over synchronous gepa was predicted as 0.8 (measured 1.0)"
    )
