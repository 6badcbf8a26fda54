"""Embeddings in a whole run: charged, journaled and counted as any other call."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from flowevolve import build, clock
from flowevolve.algorithms.gepa import GEPA
from flowevolve.config import parse_config
from flowevolve.context import UpdateContext
from flowevolve.memory.hashing import hashed_embedding
from flowevolve.registry import Registry
from flowevolve.result import Result
from flowevolve.run import run
from flowevolve.stage import Emit
from flowevolve.store.reading import Recorded

TEXTS = ["one text", "another text"]


class Measuring(GEPA):
    """Embeds two texts before it starts."""

    name = "measuring"
    roles = ("task", "reflection", "embedding")
    vectors: tuple[tuple[float, ...], ...] = ()

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        Measuring.vectors = await context.embed(TEXTS)
        async for emission in super().init(context):
            yield emission


def test_a_stage_embeds_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ALGORITHMS", Registry("algorithm", "nowhere", {"measuring": Measuring}))
    prices = {"simulated": {"input": 0, "output": 0}, "e": {"input": 1, "output": 0}}
    config = parse_config(
        {
            "clock": "virtual",
            "algorithm": {"name": "measuring"},
            "budget": {"proposals": 1},
            "llm": {"roles": {"embedding": {"model": "e"}}, "prices": prices},
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, out=tmp_path / "out")

    result = clock.run(go, clock="virtual")
    assert Measuring.vectors == tuple(map(hashed_embedding, TEXTS))
    embedded = result.by_model["e"].totals
    assert (embedded.requests, embedded.usage.prompt_tokens, embedded.usage.completion_tokens) == (1, 5, 0)
    assert result.report.spent.dollars == pytest.approx(5e-6)
    with Recorded(tmp_path / "out") as recorded:
        [call] = [call for call in recorded.calls() if call.role == "embedding"]
    assert (call.stage, call.model, call.cached) == ("init", "e", False)
    assert call.messages is not None
    assert [message.content for message in call.messages] == list(TEXTS)
    assert json.loads(call.reply or "") == [list(vector) for vector in Measuring.vectors]
