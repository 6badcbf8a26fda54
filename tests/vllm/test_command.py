"""The command line and the environment that a vLLM is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.vllm.command import Machine, find_executable, inspect_machine, serve_arguments, serve_environment
from flowevolve.vllm.settings import VLLMSettings
from tests.vllm.conftest import FakeVLLM

LAPTOP = Machine(has_gpu=False, gpu_gib=None, cores=4, free_gib=10.0)
H100 = Machine(has_gpu=True, gpu_gib=79.6, cores=64, free_gib=500.0)
RTX = Machine(has_gpu=True, gpu_gib=24.0, cores=16, free_gib=60.0)
AMD = Machine(has_gpu=True, gpu_gib=None, cores=64, free_gib=500.0)
VLLM = Path("/opt/vllm/bin/vllm")


def arguments(machine: Machine, model: str = "folder", served_as: str = "name", **settings: object) -> list[str]:
    checked = VLLMSettings.model_validate(settings)
    return serve_arguments(VLLM, checked, machine, model=model, served_as=served_as, port=7)


def environment(machine: Machine, inherited: dict[str, str] | None = None, **settings: object) -> dict[str, str]:
    checked = VLLMSettings.model_validate(settings)
    return serve_environment(VLLM, checked, machine, 1, inherited or {"PATH": "/bin"})


def value(command: list[str], flag: str) -> str | None:
    return command[command.index(flag) + 1] if flag in command else None


def test_model_name_and_address_come_first() -> None:
    command = arguments(H100, host="0.0.0.0", defaults=False)
    expected = "serve folder --served-model-name name --host 0.0.0.0 --port 7"
    assert command == [str(VLLM), *expected.split()]


@pytest.mark.parametrize(("machine", "tokens"), [(H100, "16384"), (RTX, "8192"), (AMD, None), (LAPTOP, None)])
def test_batch_limits_follow_the_memory_of_the_gpu(machine: Machine, tokens: str | None) -> None:
    assert value(arguments(machine), "--max-num-batched-tokens") == tokens


def test_the_cpu_has_limits_of_its_own() -> None:
    command = arguments(LAPTOP)
    assert value(command, "--max-num-seqs") == "64"
    assert value(command, "--block-size") == "32"
    assert "--no-enable-chunked-prefill" in command
    assert value(arguments(H100), "--max-num-seqs") is None
    assert value(arguments(H100, device="cpu"), "--block-size") == "32"
    assert value(arguments(LAPTOP, device="gpu"), "--block-size") is None


def test_what_the_user_gives_goes_before() -> None:
    flags = ["--scheduling-policy=fcfs", "--no-enable-prefix-caching", "--max_num_seqs", "3"]
    command = arguments(LAPTOP, flags=flags)
    assert command[-4:] == flags
    assert not {"--scheduling-policy", "--enable-prefix-caching", "--max-num-seqs"} & set(command)
    assert "--enable-prompt-tokens-details" in command


@pytest.mark.parametrize(
    ("model", "parser"),
    [("Qwen/Qwen3-8B", "qwen3"), ("openai/gpt-oss-20b", "openai_gptoss"), ("Qwen/Qwen2.5-7B", None)],
)
def test_thoughts_and_answers_of_a_known_family_come_apart(model: str, parser: str | None) -> None:
    assert value(arguments(H100, model), "--reasoning-parser") == parser
    assert value(arguments(H100, "/models/7", served_as=model), "--reasoning-parser") == parser
    assert "--reasoning-parser" not in arguments(H100, model, defaults=False)
    own = arguments(H100, model, flags=["--reasoning_parser=mine"])
    assert "--reasoning-parser" not in own
    assert own[-1] == "--reasoning_parser=mine"


def test_a_parser_that_needs_more_flags_has_them() -> None:
    command = arguments(H100, "mistralai/Magistral-Small-2509")
    assert (value(command, "--reasoning-parser"), value(command, "--tokenizer-mode")) == ("mistral", "mistral")


@pytest.mark.parametrize(
    ("free", "replicas", "space"),
    [(10.0, 1, "2"), (10.0, 2, "1"), (0.5, 1, "1"), (None, 1, "1"), (1000.0, 2, "16")],
)
def test_the_cache_in_main_memory_leaves_room_for_others(free: float | None, replicas: int, space: str) -> None:
    machine = Machine(has_gpu=False, gpu_gib=None, cores=4, free_gib=free)
    assert environment(machine, replicas=replicas)["VLLM_CPU_KVCACHE_SPACE"] == space
    assert "VLLM_CPU_KVCACHE_SPACE" not in environment(H100)
    assert "VLLM_CPU_KVCACHE_SPACE" not in environment(machine, flags=["--kv-cache-memory-bytes=1G"])


def test_the_environment_is_the_users_before_it_is_ours() -> None:
    given = environment(
        LAPTOP,
        {"PATH": "/bin", "VLLM_CPU_KVCACHE_SPACE": "7", "X": "outer"},
        environment={"X": "inner", "VLLM_NO_USAGE_STATS": "0"},
        replicas=2,
        devices=["0", "1"],
    )
    assert given["PATH"] == "/opt/vllm/bin:/bin"
    assert (given["VLLM_CPU_KVCACHE_SPACE"], given["X"], given["VLLM_NO_USAGE_STATS"]) == ("7", "inner", "0")
    assert given["CUDA_VISIBLE_DEVICES"] == "1"


def test_the_command_is_found_by_name_path_and_environment(fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    command = fake.folder / "bin" / "vllm"
    assert find_executable(str(fake.folder)) == command
    assert find_executable(str(command)) == command
    monkeypatch.setenv("PATH", str(command.parent))
    assert find_executable("vllm") == command


@pytest.mark.parametrize("named", ["no-such-vllm", "/nowhere/bin/vllm", "."])
def test_a_missing_command_says_how_to_get_it(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"vllm\.executable: there is no .* pip install 'flowevolve\[vllm\]'"):
        find_executable(named)


@pytest.mark.parametrize(
    ("script", "memories"),
    [("printf '81559\\n24564\\n'", 24564 / 1024), ("echo 'No devices were found'; exit 6", None)],
)
def test_the_smallest_gpu_counts(
    script: str, memories: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    machine = inspect_machine()
    assert machine.gpu_gib == memories
    assert machine.cores >= 1
