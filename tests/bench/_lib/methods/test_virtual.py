"""Methods on the virtual clock make the requests that they make of the server's process."""

from __future__ import annotations

from collections import Counter

import pytest

from bench._lib.methods.figures import figures
from bench._lib.methods.process import CEILING
from bench._lib.methods.virtual import evolve
from bench._lib.methods.workloads import WORKLOADS, Pipeline

SERVER, SECONDS = "gpt-4o-mini-api", 120.0


def test_a_run_is_recorded_from_the_validation_of_its_seed_on() -> None:
    run = evolve("lockstep", SERVER, "aime", concurrency=64, seed=0, seconds=SECONDS)
    assert run.accepted[0][0] == 0
    seed = [span for span in run.spans if span.ended <= 0]
    assert Counter(span.role for span in seed) == {"rollout": 20}
    assert max(span.ended for span in seed) == pytest.approx(0)
    assert (run.start, run.end, run.fresh) == (0.2 * SECONDS, SECONDS, True)
    assert (run.flows, run.best[0]) == (1, (0.0, Pipeline(WORKLOADS["aime"]).seed()["system_prompt"]))
    assert max(span.ended for span in run.spans) == pytest.approx(SECONDS)
    answered = [span for span in run.spans if span.tokens is not None and span.role == "reflection"]
    assert len(answered) >= sum(when <= SECONDS for when in run.proposed) > 0


def test_a_run_repeats() -> None:
    first, second = (evolve("stream", SERVER, "aime", concurrency=64, seed=1, seconds=SECONDS) for _ in range(2))
    assert (first.accepted, first.proposed) == (second.accepted, second.proposed)
    assert Counter(first.spans) == Counter(second.spans)  # what is under way at the end is cut off in any order
    assert len({span.role for span in first.spans}) > 1
    assert first.flows > 1
    assert len({text for _, text in first.best}) == len(first.best) > 1


def test_load_without_end_keeps_every_slot_busy() -> None:
    run = evolve(CEILING, SERVER, "aime", concurrency=8, seed=0, seconds=30.0)
    assert figures(run).mean_in_flight == pytest.approx(8)
    assert {span.role for span in run.spans} == {"rollout"}
