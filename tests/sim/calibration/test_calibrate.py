"""A simulated server is measured as any other, and what was put into it must be found."""

from __future__ import annotations

import random
import tomllib
from dataclasses import replace
from functools import partial

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve.core.model import ChatRequest, OverloadedError
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.calibration.calibrate import Calibration, calibrate
from flowevolve.sim.calibration.report import as_lines, as_toml
from flowevolve.sim.profiles import APIProfile, BatchingProfile, OutputLength, Profile

SILENT = OutputLength(0.0, 0.0, 8192)
H100 = BatchingProfile(SILENT, 0.0075, 0.00006, 0.000033, 256, 22_000)
API = APIProfile(SILENT, 0.45, 0.35, 0.0125, 5000.0, 2_000_000.0)
MEASURED_ON_A_CPU = BatchingProfile(
    SILENT, ((1, 0.0135), (4, 0.0147), (8, 0.0237), (64, 0.059)), 0.0007, 0.00045, 64, 2900, 1.3e-6
)


class Chronicler:
    """Writes long chronicles and short answers."""

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        return "It went on. " * 800 if "chronicle" in request.messages[-1].content else "I think it is Canberra."


def found(profile: Profile, *, most: int = 64, model: str = "simulated", seconds: float = 120.0) -> Calibration:
    backend = SimBackend(Chronicler(), profile)
    return clock.run(partial(calibrate, backend, model, most=most, seconds=seconds, seed=0), clock="virtual")


def off(calibration: Calibration, *, signed: bool = False) -> float:
    assert calibration.check is not None
    return calibration.check.error if signed else abs(calibration.check.error)


def test_the_steps_of_a_batching_server_are_found() -> None:
    profile = found(H100).profile
    assert isinstance(profile, BatchingProfile)
    for running in (1, 7, 32, 64, 200):
        assert profile.seconds_of_step(running) == pytest.approx(H100.seconds_of_step(running), rel=0.02)
    assert profile.prefill_seconds_per_token == pytest.approx(H100.prefill_seconds_per_token, rel=0.05)
    assert profile.context_seconds_per_token < 1e-8
    assert profile.cache_blocks == H100.cache_blocks


def test_steps_that_lie_on_no_line_and_grow_with_contexts_are_found() -> None:
    calibration = found(MEASURED_ON_A_CPU)
    profile = calibration.profile
    assert isinstance(profile, BatchingProfile)
    for running in (1, 8, 32, 64):
        # What the contexts of the measurement itself added is taken off again.
        assert profile.seconds_of_step(running) == pytest.approx(MEASURED_ON_A_CPU.seconds_of_step(running), rel=0.05)
    assert profile.context_seconds_per_token == pytest.approx(1.3e-6, rel=0.15)
    assert profile.prefill_seconds_per_token == pytest.approx(0.00045, rel=0.1)
    assert off(calibration) < 0.05


def test_a_server_that_was_measured_before_has_none_of_the_prompts_in_its_cache() -> None:
    async def twice() -> Calibration:
        backend = SimBackend(Chronicler(), H100)
        await calibrate(backend, "simulated", most=8, seconds=60)
        return await calibrate(backend, "simulated", most=8, seconds=60)

    profile = clock.run(twice, clock="virtual").profile
    assert isinstance(profile, BatchingProfile)
    assert profile.prefill_seconds_per_token == pytest.approx(H100.prefill_seconds_per_token, rel=0.05)


@pytest.mark.parametrize("places", [4, 13])
def test_a_queue_shows_how_many_requests_are_worked_on(places: int) -> None:
    profile = found(replace(MEASURED_ON_A_CPU, max_num_seqs=places)).profile
    assert isinstance(profile, BatchingProfile)
    assert profile.max_num_seqs == places


def test_where_no_queue_was_seen_the_usual_number_is_taken_and_told() -> None:
    calibration = found(H100, most=8)
    assert isinstance(calibration.profile, BatchingProfile)
    assert calibration.profile.max_num_seqs == 256
    assert [each for each in calibration.assumed if "no queue was seen with 8" in each]


def test_a_server_without_a_prefix_cache_has_none() -> None:
    profile = found(replace(MEASURED_ON_A_CPU, cache_blocks=0)).profile
    assert isinstance(profile, BatchingProfile)
    assert profile.cache_blocks == 0


def test_a_cache_that_the_server_tells_of_is_believed_even_if_no_answer_was_faster() -> None:
    profile = found(replace(H100, prefill_seconds_per_token=0.0)).profile
    assert isinstance(profile, BatchingProfile)
    assert profile.cache_blocks == H100.cache_blocks


def test_an_api_whose_latency_does_not_depend_on_its_load() -> None:
    calibration = found(API)
    profile = calibration.profile
    assert isinstance(profile, APIProfile)
    assert profile.per_token_seconds == pytest.approx(API.per_token_seconds, rel=0.15)
    assert profile.first_token_seconds == pytest.approx(API.first_token_seconds, rel=0.15)
    assert profile.first_token_sigma == pytest.approx(API.first_token_sigma, rel=0.25)
    assert off(calibration) < 0.1


def test_limits_of_an_api_are_told_as_a_person_would_write_them() -> None:
    calibration = found(API, most=8)
    assert dict(as_lines(calibration))["limits"] == "any number of requests and any number of tokens a minute"
    assert isinstance(calibration.profile, APIProfile)
    limited = replace(calibration.profile, requests_per_minute=500.0, tokens_per_minute=2e6)
    lines = dict(as_lines(replace(calibration, profile=limited)))
    assert lines["limits"] == "500 requests and 2,000,000 tokens a minute"


def test_a_model_that_thinks_is_told_by_tokens_that_are_in_no_text() -> None:
    thinking = OutputLength(180.0, 0.3, 8192)
    output = found(replace(H100, output=thinking)).profile.output
    assert output.median == pytest.approx(180, rel=0.4)
    assert found(H100).profile.output.median == 0


def test_what_a_server_refuses_ends_the_growth() -> None:
    calibration = found(replace(API, requests_per_minute=120.0))
    assert calibration.check is None
    assert calibration.measured.refused_at is not None
    assert "refused" in dict(as_lines(calibration))


def test_a_server_that_refuses_single_requests_is_not_measured() -> None:
    with pytest.raises(OverloadedError):
        found(replace(API, requests_per_minute=1.0))


def test_a_model_that_is_not_served_is_said() -> None:
    with pytest.raises(BackendRefusedError, match="no-such-model"):
        found(H100, model="no-such-model")


def test_a_server_that_is_down_is_said() -> None:
    backend = SimBackend(Chronicler(), H100)
    backend.down = True
    with pytest.raises(BackendUnreachableError):
        clock.run(partial(calibrate, backend, "simulated"), clock="virtual")


@pytest.mark.parametrize("profile", [MEASURED_ON_A_CPU, API])
def test_the_file_has_the_profile_and_what_stands_behind_it(profile: Profile) -> None:
    calibration = found(profile, most=8)
    text = as_toml(calibration, "How fast it was.")
    read = tomllib.loads(text)
    assert read.pop("output") == {"median": 0.0, "sigma": 0.0, "most": 8192}
    for name, value in read.items():
        expected = getattr(calibration.profile, name)
        assert value == ([list(each) for each in expected] if isinstance(expected, tuple) else expected)
    assert text.startswith("# How fast it was.\n")
    assert f"({off(calibration, signed=True):+.0%})" in text
