"""Whole runs with a model that thinks in its replies: they go as with one that does not, and no draft is taken."""

from __future__ import annotations

import io
import random
from pathlib import Path

import anyio
import pytest
from rich.console import Console

from flowevolve._util.errors import BackendRefusedError
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatRequest
from flowevolve.journal.reading import RecordedRun
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld
from flowevolve.telemetry.summary import summarize

DRAFT = "Maybe so:\n```\nDRAFT that is longer than the answer" + " and longer" * 200 + "\n```\n42. No, better:\n"
FORMS = {
    "tags": f"<think>\n{DRAFT}</think>\n\n",
    "no opening tag": f"{DRAFT}</think>\n\n",
    "a fence that never ends": f"<think>\n{DRAFT}```python\nDRAFT\n</think>\n\n",
    "channels": f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>",
}


class Thinking(RulesWorld):
    """Answers as its base does, with thoughts before."""

    def __init__(self, thoughts: str) -> None:
        super().__init__(PRESETS["normal"])
        self._thoughts = thoughts

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        return self._thoughts + super().reply(request, rng)


async def evolve(thoughts: str, out: Path, **llm: object) -> Result:
    """A run in lockstep, which takes its decisions in one order whatever the server's speed."""
    backend = SimBackend(Thinking(thoughts), PROFILES["instant"], model="Qwen/Qwen3-8B")
    async with serve(backend) as url:
        table = {
            "algorithm": {"mode": "sync"},
            "budget": {"proposals": 6},
            "llm": {"backend": "openai", "transport": "aiohttp", "model": "Qwen/Qwen3-8B", "base_url": url, **llm},
        }
        return await run(parse_config(table, "test"), out=out)


def decisions(out: Path) -> list[object]:
    with RecordedRun(out) as recorded:
        return [event.data for event in recorded.events() if event.kind in ("candidate.proposed", "pool.commit")]


@pytest.mark.parametrize("form", FORMS)
def test_a_run_goes_as_with_a_model_that_does_not_think(form: str, tmp_path: Path) -> None:
    anyio.run(evolve, "", tmp_path / "plain")
    result = anyio.run(evolve, FORMS[form], tmp_path / "thinking")
    assert decisions(tmp_path / "thinking") == decisions(tmp_path / "plain")
    assert result.report.accepted > 0
    with RecordedRun(tmp_path / "thinking") as recorded:
        calls = list(recorded.calls())
    assert all("DRAFT" in (call.thinking or "") and "DRAFT" not in (call.reply or "") for call in calls)
    assert result.llm.usage.completion_tokens > 500 * len(calls)  # thoughts are paid for


def test_what_is_cut_while_thinking_is_counted_and_shown(tmp_path: Path) -> None:
    async def go() -> None:
        with pytest.raises(
            BackendRefusedError, match=r"each of the first 10 calls .* failed; .* raise llm.thinking_tokens"
        ):
            await evolve(FORMS["tags"], tmp_path / "run", max_tokens=10, thinking_tokens=20)

    anyio.run(go)
    result = Result.load(tmp_path / "run")
    assert result.llm.cut_while_thinking == result.llm.requests == result.llm.failed > 0
    written = result.to_json()
    llm = written["llm"]
    assert isinstance(llm, dict)
    assert llm["cut_while_thinking"] == result.llm.requests
    console = Console(file=io.StringIO(), width=200)
    console.print(summarize(written))
    assert isinstance(console.file, io.StringIO)
    assert "calls while the model still thought: raise llm.thinking_tokens" in console.file.getvalue()
