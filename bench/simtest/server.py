"""The simulated server of a case: it fails in every way there is, and counts how often each request is made."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b

import anyio

from bench.simtest.case import FaultKind
from flowevolve._util.json_types import JSON
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
)
from flowevolve.llm.usage import usage_in
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import APIProfile, BatchingProfile, OutputLength, Profile
from flowevolve.sim.worlds.catalog import WORLDS
from flowevolve.sim.worlds.rules.params import PRESETS

_NONE = OutputLength(median=0.0, sigma=0.0, most=4096)
_SOME = OutputLength(median=60.0, sigma=0.9, most=4096)
PROFILES: Mapping[str, Profile] = {
    "even": APIProfile(_NONE, 2.0, 0.0, 0.0, float("inf"), float("inf")),
    "uneven": APIProfile(_SOME, 1.0, 0.8, 0.02, float("inf"), float("inf")),
    "limited": APIProfile(_SOME, 0.5, 0.4, 0.01, requests_per_minute=240.0, tokens_per_minute=400_000.0),
    "batching": BatchingProfile(_SOME, 0.01, 0.002, 0.0001, max_num_seqs=8, cache_blocks=400),
}
"""How fast the server is, by the name of the profile."""
SLOW_SECONDS = 45.0
_UNREADABLE = ("", "no", "<think>it is", "```\n```", "{", "## \ud800", "[[ ## x ## ]]", "I can't help with that.")
_ODD_USAGE: tuple[JSON, ...] = (
    {},
    {"prompt_tokens": -5, "completion_tokens": 3},
    {"prompt_tokens": 10**18, "completion_tokens": 2**63},
    {"prompt_tokens": "many", "completion_tokens": None},
    {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    {"prompt_tokens": 4, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 99}},
)


class Server(SimBackend):
    """A `SimBackend` at which a share of the attempts goes wrong, as the case says.

    ``on_call`` is called when an attempt begins and when it ends, with the number of attempts then under way, and with
    whether this one begins.
    """

    def __init__(
        self,
        world: str,
        profile: str,
        faults: Mapping[FaultKind, float],
        seed: int,
        on_call: Callable[[int, bool], None],
    ) -> None:
        super().__init__(WORLDS[world](PRESETS["easy"]), PROFILES[profile])
        self._rates = faults
        self._case = seed
        self._on_call = on_call
        self._attempts: dict[str, int] = {}
        self.under_way = 0

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        asked = "\x1f".join(f"{each.role}\x1e{each.content}" for each in request.messages)
        with self._one_more():
            fault, rng = self._draw(f"{request.seed}\x1f{asked}")
            await self._fail(fault, timeout)
            reply = await self.answer(request, timeout=timeout)
            if fault == "unreadable":
                return replace(reply, text=rng.choice(_UNREADABLE))
            if fault == "cut":
                return replace(reply, text=reply.text[: len(reply.text) // 2], finish_reason="length")
            return replace(reply, usage=usage_in(rng.choice(_ODD_USAGE))) if fault == "odd usage" else reply

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        with self._one_more():
            fault, rng = self._draw("\x1f".join(request.texts))
            await self._fail(fault, timeout)
            if rng.random() < self._rates.get("embedding", 0.0):
                raise RejectedError("no embeddings of this")
            return await super().embed(request, timeout=timeout)

    async def models(self) -> tuple[str, ...]:
        return (*self.served, *MODELS)

    async def _check(self, model: str) -> None:
        """All models are served."""
        await anyio.lowlevel.checkpoint()

    @contextmanager
    def _one_more(self) -> Generator[None]:
        self.under_way += 1
        try:
            self._on_call(self.under_way, True)
            yield
        finally:
            self.under_way -= 1
            self._on_call(self.under_way, False)

    def _draw(self, asked: str) -> tuple[FaultKind | None, random.Random]:
        """The fault of this attempt, and a generator for what else is drawn for it. Both depend on what is asked, and
        on how often it was asked.
        """
        count = self._attempts[asked] = self._attempts.get(asked, 0) + 1
        key = blake2b(f"{self._case}\x1f{count}\x1f{asked}".encode("utf-8", "surrogatepass"), digest_size=8)
        rng = random.Random(int.from_bytes(key.digest(), "big"))
        place = rng.random()
        for kind, rate in self._rates.items():
            if kind in _OF_ATTEMPTS:
                if place < rate:
                    return kind, rng
                place -= rate
        return None, rng

    async def _fail(self, fault: FaultKind | None, timeout: float) -> None:
        await anyio.lowlevel.checkpoint()
        match fault:
            case "overloaded":
                raise OverloadedError("too many", status=429, retry_after=3.0)
            case "error":
                raise ServerError("broken", status=500)
            case "unreachable":
                raise UnreachableError("reset")
            case "rejected":
                raise RejectedError("a bad request", status=400)
            case "refused":
                raise RefusedError("a bad key", status=401)
            case "hang":
                await anyio.sleep(timeout)
                raise UnreachableError(f"no answer within {timeout:g} s")
            case "slow":
                await anyio.sleep(min(SLOW_SECONDS, timeout / 2))


_OF_ATTEMPTS = frozenset[FaultKind](
    {"overloaded", "error", "unreachable", "rejected", "refused", "hang", "slow", "unreadable", "cut", "odd usage"}
)
MODELS = ("large-coder", "small-coder")
"""Models that are served besides the one for requests that name none."""
