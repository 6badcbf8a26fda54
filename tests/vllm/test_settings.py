"""The ``[vllm]`` section: what it refuses, and how flags are read."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from flowevolve._util.errors import InputError
from flowevolve.config.run import Config, parse_config
from flowevolve.vllm.settings import VLLMSettings, flag_value, has_flag


def config(llm: Mapping[str, object], vllm: Mapping[str, object] | None = None) -> Config:
    return parse_config({"llm": llm, "vllm": vllm or {}, "budget": {"proposals": 1}}, "test")


OWN = {"backend": "vllm", "model": "m"}


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"flags": ["--port", "1"]}, "--port is set by flowevolve; use vllm.port instead"),
        ({"flags": ["--served_model_name=x"]}, "use llm.model"),
        ({"flags": ["--host=::"]}, "use vllm.host"),
        ({"replicas": 2, "devices": ["0"]}, "devices has one entry, but replicas is 2"),
        ({"port": 65535, "replicas": 2}, "leaves no room"),
        ({"port": 70000}, "vllm.port"),
        ({"replicas": 0}, "vllm.replicas"),
        ({"startup_seconds": 0}, "vllm.startup_seconds"),
        ({"restarts": -1}, "vllm.restarts"),
        ({"device": "tpu"}, "vllm.device"),
        ({"flag": []}, "did you mean 'flags'"),
        ({"on": "ray", "devices": ["0"]}, "devices: with on = 'ray', Ray says which GPUs"),
        ({"on": "ray", "host": "0.0.0.0"}, "host: with on = 'ray', a replica listens at its node's address"),
        ({"gpus": 2}, "gpus is only for on = 'ray'"),
    ],
)
def test_a_mistake_is_named(section: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as raised:
        config(OWN, section)
    assert says in str(raised.value)


def test_a_run_is_part_of_one_ray_cluster() -> None:
    table = {"llm": OWN, "budget": {"proposals": 1}, "sandbox": {"on": "ray"}}
    with pytest.raises(InputError, match=r"vllm\.address is 'h:1', but sandbox\.address is 'auto'"):
        parse_config({**table, "vllm": {"on": "ray", "address": "h:1"}}, "test")


@pytest.mark.parametrize(
    ("settings", "gpus"),
    [
        ({}, 1),
        ({"flags": ["--tensor-parallel-size", "4", "--pipeline_parallel_size=2"]}, 8),
        ({"flags": ["--tensor-parallel-size", "4"], "gpus": 2}, 2),
        ({"device": "cpu"}, 0),
    ],
)
def test_how_many_gpus_a_replica_takes(settings: dict[str, object], gpus: int) -> None:
    assert VLLMSettings.model_validate({"on": "ray", **settings}).gpus_each == gpus


def test_flags_are_found_in_every_spelling() -> None:
    flags = ["--max_num_seqs", "8", "--block-size=16", "--no-enable-prefix-caching", "--max-num-seqs", "9"]
    assert has_flag(flags, "--max-num-seqs")
    assert has_flag(flags, "--block-size")
    assert has_flag(flags, "--enable-prefix-caching")
    assert has_flag(["--enable-chunked-prefill"], "--no-enable-chunked-prefill")
    assert not has_flag(flags, "--enforce-eager")
    assert not has_flag(["--x", "max-num-seqs"], "--max-num-seqs")
    assert flag_value(flags, "--max-num-seqs") == "9"
    assert flag_value(flags, "--block-size") == "16"
    assert flag_value(flags, "--seed") is None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"flags": ["--scheduling-policy", "fcfs"]}, False),
        ({"flags": ["--scheduling_policy=fcfs"]}, False),
        ({"defaults": False}, False),
        ({"defaults": False, "flags": ["--scheduling-policy=priority"]}, True),
    ],
)
def test_whether_it_schedules_by_priority(settings: dict[str, object], expected: bool) -> None:
    assert VLLMSettings.model_validate(settings).by_priority is expected
    assert config(OWN, settings).llm.send_priority is expected


def test_what_suits_a_vllm_of_our_own_is_filled_in_and_what_is_given_stays() -> None:
    llm = config(OWN, {"startup_seconds": 900}).llm
    assert (llm.transport, llm.send_priority, llm.patience_seconds) == ("aiohttp", True, 960.0)
    given = config({**OWN, "transport": "openai", "send_priority": False, "patience_seconds": 5}).llm
    assert (given.transport, given.send_priority, given.patience_seconds) == ("openai", False, 5.0)


@pytest.mark.parametrize("there", [{"base_url": "http://127.0.0.1:1/v1"}, {"base_urls": ["http://127.0.0.1:1/v1"]}])
def test_of_a_vllm_that_runs_already_only_what_is_sure_is_taken(there: dict[str, object]) -> None:
    llm = config({**OWN, **there}).llm
    assert (llm.transport, llm.send_priority, llm.patience_seconds) == ("aiohttp", False, 300.0)


def test_other_backends_are_left_alone() -> None:
    llm = config({"backend": "openai", "model": "m"}).llm
    assert (llm.transport, llm.send_priority) == ("openai", False)


def test_it_needs_a_model() -> None:
    with pytest.raises(InputError, match=r"backend 'vllm' needs llm\.model"):
        config({"backend": "vllm"})
