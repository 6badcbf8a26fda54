"""Profiles by name and from files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.sim.profiles import PROFILES, BatchingProfile, find_profile

BATCHING = """
step_seconds = 0.02
per_sequence_seconds = 0.001
prefill_seconds_per_token = 0.0001
max_num_seqs = 64
cache_blocks = 5000

[output]
median = 200.0
sigma = 0.7
most = 2048
"""


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_survives_being_written_to_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(asdict(PROFILES[name])))
    assert find_profile(str(path)) == find_profile(name)


def test_a_profile_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(BATCHING)
    profile = find_profile(str(path))
    assert asdict(profile)["max_num_seqs"] == 64
    assert profile.output.median == 200


def test_steps_that_were_measured_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(BATCHING.replace("0.02", "[[1, 0.02], [4, 0.05]]"))
    profile = find_profile(str(path))
    assert isinstance(profile, BatchingProfile)
    assert profile.step_seconds == ((1, 0.02), (4, 0.05))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_num_seq = 4" + BATCHING, "max_num_seq: unknown key; did you mean 'max_num_seqs'?"),
        (BATCHING.replace("step_seconds = 0.02", ""), "step_seconds is missing"),
        (BATCHING.replace("0.02", "-1"), "step_seconds is -1, but has to be at least 0"),
        (BATCHING + "spread = 2", "output.spread: unknown key; there are median, sigma, most"),
        ("step_seconds", "the profile can't be read"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        find_profile(str(path))
    assert said in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_name_or_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown profile 'qwen3-8b-h10'; did you mean 'qwen3-8b-h100'\?"):
        find_profile("qwen3-8b-h10")
    with pytest.raises(InputError, match=r"nowhere\.toml: no such file"):
        find_profile("nowhere.toml")
