"""Measures how fast a server is: which requests it is sent, and which figures follow from its answers.

How long a step takes is the difference in time between two rounds of the same number of requests, one with short and
one with long answers, divided by the difference in tokens: prefill, queues at the start and the network are in both
rounds and cancel out. How long a token of a prompt takes is the slope over single requests whose answer is one token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median

from flowevolve._util import clock
from flowevolve._util.tasks import run_all
from flowevolve.core.model import OverloadedError
from flowevolve.sim.calibration.rounds import Answer, Ask, AskedServer, Round, Texts

SHORT, LONG = 8, 56
"""Tokens of the answers whose difference shows how long a step takes."""
PROMPT = 200
"""Characters of the prompts where prompts do not matter."""
PROMPTS = (400, 1200, 2400, 4800)
"""Characters of the prompts that show how long prefill takes."""
CONTEXT = 2400
"""Characters of the prompts that show what contexts cost; the prompts of most tasks have fewer."""
REPEATS = 3
"""How often each figure is measured; the median counts."""
QUESTIONS = (
    "What is the capital of Australia?",
    "A train takes 3 hours for 240 km. How long does it take for 400 km?",
    "Name three reasons why bread rises.",
    "Rewrite in one sentence: The meeting was moved. It is on Friday now. Nobody was told.",
    "Which of these words does not belong: apple, pear, hammer, plum?",
    "Write a line of Python that sums the squares of a list of numbers.",
)
"""Their answers show how much a model thinks before it answers."""
MOST_ANSWER = 1024
"""Tokens that an answer to one of them may have."""
AGAIN_WITHIN = 15.0
"""A load is measured again only if less time than this, in seconds, has passed since its first measurement began."""
WAITED = 1.6
"""A request may have waited for a place if its answer takes this many times as long as the fastest of its round."""
LATER = 1.3
"""It has waited if answers take at least this many times as long on average as with half as many requests."""


@dataclass(frozen=True, slots=True)
class Load:
    """Two rounds with the same number of requests, one with short and one with long answers."""

    short: Round
    long: Round

    @property
    def requests(self) -> int:
        return len(self.long.answers)

    @property
    def seconds_of_step(self) -> float:
        """How long the server takes to write one token of each answer."""
        tokens = self.long.longest - self.short.longest
        return max(0.0, self.long.seconds - self.short.seconds) / tokens if tokens > 0 else 0.0

    @property
    def at_once(self) -> int:
        """How many of the requests were answered in about the time of the fastest; others may have waited."""
        fastest = min(answer.seconds for answer in self.long.answers)
        return sum(answer.seconds < WAITED * fastest for answer in self.long.answers)

    @property
    def seconds_of_answer(self) -> float:
        """The mean time that a long answer took."""
        return fmean(answer.seconds for answer in self.long.answers)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a server."""

    loads: Sequence[Load]
    """The measured loads by increasing numbers of requests, each as often as it was measured."""
    contexts: Sequence[Load]
    """Measurements of one number of requests with prompts of `CONTEXT` characters; none if the server refused some of
    the requests before.
    """
    prefills: Mapping[int, Sequence[Answer]]
    """The answers of one token to new prompts, by the number of characters in the prompt."""
    again: Sequence[Answer]
    """The answers to the longest of these prompts when it was sent again."""
    free: Sequence[Answer]
    """Answers to `QUESTIONS`, which end where the model ends them."""
    refused_at: int | None
    """At how many requests at a time the server refused some; None if it refused none."""

    @property
    def places(self) -> int | None:
        """How many requests the server works on at a time; None if no load made any of them wait."""
        return places(self.loads)

    def of(self, requests: int) -> Sequence[Load]:
        return [load for load in self.loads if load.requests == requests]

    def seconds_of_step(self, requests: int) -> float:
        return median(load.seconds_of_step for load in self.of(requests))

    def requests(self) -> list[int]:
        """The numbers of requests that were measured, in order."""
        return sorted({load.requests for load in self.loads})


def places(loads: Sequence[Load]) -> int | None:
    """How many requests a server works on at a time, judged by the largest load; None if none of its requests waited.

    Some answers of an API come late by chance. If requests wait for a place, answers are also later on average.
    """
    largest = loads[-1].requests
    before = max((load.requests for load in loads if load.requests < largest), default=0)
    fewer = [load.seconds_of_answer for load in loads if load.requests == before]
    last = [load for load in loads if load.requests == largest]
    waited = [load.at_once for load in last if load.at_once < largest]
    later = fewer and median(load.seconds_of_answer for load in last) >= LATER * median(fewer)
    return round(median(waited)) if later and len(waited) == len(last) else None


async def measure(
    server: AskedServer, texts: Texts, *, most: int, seconds: float, tell: Callable[[str], None] = lambda _: None
) -> Measured:
    """Measure a server for about ``seconds``, with at most ``most`` requests at a time. ``tell`` is called with words
    on what is being done.

    Raises:
        BackendRefusedError, BackendUnreachableError, OverloadedError: as `AskedServer` does.
    """
    begun = clock.now()
    tell("warming up")
    for requests in (1, 1, 8):
        await server.together(_asks(texts, requests, PROMPT, SHORT))
    tell("prompts")
    prefills: dict[int, list[Answer]] = {characters: [] for characters in PROMPTS}
    last = ""
    for _ in range(REPEATS):
        for characters in PROMPTS:
            last = texts.prompt(characters)
            prefills[characters].append(await server.ask(Ask(last, 1)))
    again = [await server.ask(Ask(last, 1)) for _ in range(REPEATS)]
    tell("answers")
    free = await run_all([partial(server.ask_freely, Ask(text, MOST_ANSWER)) for text in QUESTIONS])
    loads, refused_at = await _grow(server, texts, most, begun + seconds * 2 / 3, tell)
    contexts: list[Load] = []
    if refused_at is None:
        tell("long prompts")
        unqueued = max((load.requests for load in loads if load.at_once == load.requests), default=1)
        contexts = await _repeated(server, texts, min(16, unqueued), CONTEXT)
    return Measured(loads, contexts, prefills, again, free, refused_at)


async def _grow(
    server: AskedServer, texts: Texts, most: int, until: float, tell: Callable[[str], None]
) -> tuple[list[Load], int | None]:
    """Measure loads of 1, 2, 4 … requests, until ``most`` is reached, a queue forms, the server refuses some or the
    time is up. Returns the loads, and the number of requests at which the server refused some.
    """
    loads: list[Load] = []
    requests = 1
    while requests <= most and clock.now() < until:
        tell(f"{requests} at a time")
        try:
            loads += await _repeated(server, texts, requests, PROMPT)
        except OverloadedError:
            if not loads:
                raise
            return loads, requests
        if places(loads) is not None:
            break
        requests *= 2
    return loads, None


async def _repeated(server: AskedServer, texts: Texts, requests: int, characters: int) -> list[Load]:
    begun = clock.now()
    loads = [await _load(server, texts, requests, characters)]
    while len(loads) < REPEATS and clock.now() < begun + AGAIN_WITHIN:
        loads.append(await _load(server, texts, requests, characters))
    return loads


async def _load(server: AskedServer, texts: Texts, requests: int, characters: int) -> Load:
    short = await server.together(_asks(texts, requests, characters, SHORT))
    return Load(short, await server.together(_asks(texts, requests, characters, LONG)))


def _asks(texts: Texts, requests: int, characters: int, tokens: int) -> list[Ask]:
    return [Ask(texts.prompt(characters), tokens) for _ in range(requests)]
