"""``flowevolve serve``: what it exits with, where servers have given up."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from flowevolve.vllm.server import ServerChange, ServerListener
from flowevolve.vllm.settings import VLLMSettings
from tests.support.command import flowevolve

URLS = ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1"]


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (1, 0), (2, 3)])
def test_only_if_all_servers_have_given_up_it_ends_by_itself_and_as_a_failure(
    lost: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def serve_vllm(
        model: str, settings: VLLMSettings, *, log: Path, on_event: ServerListener
    ) -> AsyncGenerator[list[str]]:
        for url in URLS[:lost]:
            on_event(ServerChange("gave_up", url, "it died 4 times"))
        await anyio.wait_all_tasks_blocked()  # signals are waited for by then
        if lost < len(URLS):
            signal.raise_signal(signal.SIGINT)
        yield URLS

    monkeypatch.setattr("flowevolve.vllm.serving.serve_vllm", serve_vllm)
    done = flowevolve("serve", "m", "--replicas", "2", cwd=tmp_path)
    assert done.returncode == code
    assert done.stdout.count("it died 4 times") == lost
    assert done.stderr == ("error: http://127.0.0.1:8001/v1: it died 4 times\n" if code else "")
