"""The simulated server in this process: a transport that gets its texts from a world and its timing from a service."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b

import anyio
import anyio.lowlevel

from flowevolve.core.model import (
    CHARS_PER_TOKEN,
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    RefusedError,
    UnreachableError,
    Usage,
)
from flowevolve.experience.hashing import hashed_embedding
from flowevolve.llm.scheduling.admission import ServerLoad
from flowevolve.sim.faults import Fault, Faults, apply_fault
from flowevolve.sim.lengths import MeasuredLengths
from flowevolve.sim.profiles import BatchingProfile, Profile
from flowevolve.sim.service_model import BLOCK_TOKENS, Served, Service, count_tokens, make_service
from flowevolve.sim.worlds.base import World

OnWriting = Callable[[str, float], None]
"""Called when the writing of an answer begins, with the text and with the seconds that writing it will take at the
present load. It must not block.
"""


class SimBackend:
    """Implements `Transport` and `EmbeddingTransport` of `flowevolve.core.model`, and
    `flowevolve.llm.scheduling.admission.Probe`.

    The text and the length of an answer depend on the messages, temperature and seed alone; its latency depends on the
    load. All served models behave alike, except where the world looks at a model's name. ``faults`` decides which chats
    go wrong. ``lengths`` decides how long answers are; without it, the profile does. While ``down`` is set, every call
    fails as if the server were gone.
    """

    base_url = "simulated"

    def __init__(
        self,
        world: World,
        profile: Profile,
        *,
        model: str = "simulated",
        other_models: Sequence[str] = (),
        faults: Faults | None = None,
        lengths: MeasuredLengths | None = None,
    ) -> None:
        self.model = model
        self.served = tuple(dict.fromkeys((model, *other_models)))
        self.down = False
        self.service: Service = make_service(profile)
        self._world = world
        self._profile = profile
        self._faults = faults
        self._lengths = lengths

    @property
    def identity(self) -> str:
        """What texts and lengths depend on besides the request. The response cache uses it as part of its key."""
        return f"simulated: {self._world!r}, {self._profile!r}"

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        fault = self.next_fault(request)
        if fault is None or self.down:
            return await self.answer(request, timeout=timeout)
        return await apply_fault(fault, lambda: self.answer(request, timeout=timeout), request, timeout)

    def next_fault(self, request: ChatRequest) -> Fault | None:
        """The fault of the next attempt at this request, or None if it goes well."""
        return None if self._faults is None else self._faults.draw(_key(request))

    async def answer(self, request: ChatRequest, *, timeout: float, on_writing: OnWriting | None = None) -> ChatReply:
        """Answer without any fault.

        Raises:
            LLMError: as `chat`.
        """
        await self._check(request.model)
        rng = random.Random(_key(request))
        text = self._world.reply(request, rng)
        visible, lengths = count_tokens(text), self._lengths
        tokens = (
            self._profile.output.draw(rng, visible) if lengths is None else lengths.draw_output(request, rng, visible)
        )
        text, tokens, finish_reason = _cut(text, tokens, request.max_tokens)
        prompt = "\n".join(message.content for message in request.messages)
        on_begin = None if on_writing is None else partial(on_writing, text)
        served = await self._serve(prompt, tokens, request.priority or 0, rng, timeout, on_begin)
        usage = Usage(count_tokens(prompt), tokens, served.cached_tokens)
        if lengths is not None:
            usage = lengths.counted(usage)
        return ChatReply(text, usage, finish_reason, request.model)

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        """Embed the texts. This takes the time of reading them and writing one token."""
        await self._check(request.model)
        prompt = "\n".join(request.texts)
        await self._serve(prompt, 1, 0, random.Random(0), timeout)
        vectors = tuple(hashed_embedding(text) for text in request.texts)
        return EmbedReply(vectors, Usage(sum(map(count_tokens, request.texts))), request.model)

    async def _check(self, model: str) -> None:
        if self.down:
            await anyio.lowlevel.checkpoint()
            raise UnreachableError("the simulated server is down")
        if model not in self.served:
            raise RefusedError(f"the model {model!r} does not exist", status=404)

    async def _serve(
        self,
        prompt: str,
        tokens: int,
        priority: int,
        rng: random.Random,
        seconds: float,
        on_begin: Callable[[float], None] | None = None,
    ) -> Served:
        try:
            with anyio.fail_after(seconds):
                return await self.service.serve(prompt, tokens, priority, rng, on_begin)
        except TimeoutError:
            raise UnreachableError(f"no answer within {seconds:g} s") from None

    async def models(self) -> tuple[str, ...]:
        if self.down:
            raise UnreachableError("the simulated server is down")
        return self.served

    async def load(self) -> ServerLoad | None:
        """The load that a batching server reports; None for an API, and for a server that is down."""
        if self.down or not isinstance(self._profile, BatchingProfile):
            return None
        stats = self.service.stats
        return ServerLoad(
            stats.running,
            stats.waiting,
            prefix_queries=stats.prompt_tokens,
            prefix_hits=stats.cached_tokens,
            cache_tokens=self._profile.cache_blocks * BLOCK_TOKENS,
        )

    async def aclose(self) -> None:
        """Nothing to close."""


def _key(request: ChatRequest) -> int:
    """Hash all that an answer depends on into a seed for its random generator."""
    digest = blake2b(f"{request.seed}\x1f{request.temperature}".encode(), digest_size=8)
    for message in request.messages:
        digest.update(f"\x1f{message.role}\x1f{message.content}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "big")


def _cut(text: str, tokens: int, most: int | None) -> tuple[str, int, str]:
    """Apply the limit ``most`` on output tokens, and return the text, the tokens and the reason why the answer ended.

    Thinking comes before the visible text, so it is the end of the visible text that is cut off.
    """
    if most is None or tokens <= most:
        return text, tokens, "stop"
    visible = max(0, count_tokens(text) - (tokens - most))
    return text[: visible * CHARS_PER_TOKEN], most, "length"
