"""The simulated server inside this process: a transport that asks a world for the text and a service for the time."""

from __future__ import annotations

import random
from hashlib import blake2b

import anyio
import anyio.lowlevel

from flowevolve.llm.admission import ServerLoad
from flowevolve.llm.types import ChatReply, ChatRequest, RefusedError, ServerError, UnreachableError, Usage
from flowevolve.sim.profiles import BatchingProfile, Profile
from flowevolve.sim.service import CHARS_PER_TOKEN, Served, Service, count_tokens, make_service, total_text
from flowevolve.sim.world import World


class SimBackend:
    """Implements `flowevolve.llm.types.Transport` and `flowevolve.llm.admission.Probe`.

    What is answered, and at what length, depends on the messages, temperature and seed alone; when depends on the load.
    ``error_rate`` is the probability of a 500, also a function of the request. ``down`` makes every call fail as if the
    server were gone.
    """

    base_url = "simulated"

    def __init__(self, world: World, profile: Profile, *, model: str = "simulated", error_rate: float = 0.0) -> None:
        self.model = model
        self.down = False
        self.service: Service = make_service(profile)
        self._world = world
        self._profile = profile
        self._error_rate = error_rate

    @property
    def identity(self) -> str:
        """What texts and lengths depend on beside the request, for the response cache."""
        return f"simulated: {self._world!r}, {self._profile!r}"

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        if self.down:
            await anyio.lowlevel.checkpoint()
            raise UnreachableError("the simulated server is down")
        if request.model != self.model:
            raise RefusedError(f"the model {request.model!r} does not exist", status=404)
        rng = random.Random(_key(request))
        text = self._world.reply(request, rng)
        tokens = self._profile.output.draw(rng, count_tokens(text))
        failing = rng.random() < self._error_rate
        text, tokens, finish_reason = _cut(text, tokens, request.max_tokens)
        prompt = total_text([message.content for message in request.messages])
        served = await self._serve(prompt, tokens, request.priority or 0, rng, timeout)
        if failing:
            raise ServerError("simulated fault", status=500)
        return ChatReply(text, Usage(count_tokens(prompt), tokens, served.cached_tokens), finish_reason, self.model)

    async def _serve(self, prompt: str, tokens: int, priority: int, rng: random.Random, seconds: float) -> Served:
        try:
            with anyio.fail_after(seconds):
                return await self.service.serve(prompt, tokens, priority, rng)
        except TimeoutError:
            raise UnreachableError(f"no answer within {seconds:g} s") from None

    async def models(self) -> tuple[str, ...]:
        if self.down:
            raise UnreachableError("the simulated server is down")
        return (self.model,)

    async def load(self) -> ServerLoad | None:
        """What a batching server would say of itself; an API says nothing."""
        if self.down or not isinstance(self._profile, BatchingProfile):
            return None
        stats = self.service.stats
        return ServerLoad(
            stats.running, stats.waiting, prefix_queries=stats.prompt_tokens, prefix_hits=stats.cached_tokens
        )

    async def aclose(self) -> None:
        """Nothing to close."""


def _key(request: ChatRequest) -> int:
    """What an answer depends on, as a generator's seed."""
    digest = blake2b(f"{request.seed}\x1f{request.temperature}".encode(), digest_size=8)
    for message in request.messages:
        digest.update(f"\x1f{message.role}\x1f{message.content}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "big")


def _cut(text: str, tokens: int, most: int | None) -> tuple[str, int, str]:
    """Apply ``max_tokens``: thinking comes first, so what is cut off is the end of the visible text."""
    if most is None or tokens <= most:
        return text, tokens, "stop"
    visible = max(0, count_tokens(text) - (tokens - most))
    return text[: visible * CHARS_PER_TOKEN], most, "length"
