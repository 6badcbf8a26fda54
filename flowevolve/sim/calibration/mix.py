"""Compares a profile with its server, on requests that nothing was fitted to: long and short ones, some of which begin
like earlier ones.

Each slot sends its next request as soon as it has an answer, as the workers of a run do.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from flowevolve._util import clock
from flowevolve._util.tasks import run_all
from flowevolve.core.model import OverloadedError
from flowevolve.sim.calibration.rounds import Ask, AskedServer, Texts
from flowevolve.sim.profiles import Profile
from flowevolve.sim.service_model import make_service

EACH = 6
"""How many requests there are for each slot."""


@dataclass(frozen=True, slots=True)
class Check:
    """How long the requests took on the server, and how long they take according to the profile."""

    at_once: int
    requests: int
    seconds: float
    predicted: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of what was measured."""
        return self.predicted / self.seconds - 1 if self.seconds > 0 else 0.0


async def compare(server: AskedServer, profile: Profile, texts: Texts, at_once: int) -> Check | None:
    """Send requests to the server, ``at_once`` at a time, and predict by the profile how long they take; None if the
    server refuses some of them.

    Raises:
        BackendRefusedError, BackendUnreachableError: as `AskedServer` does.
    """
    asks = _mixed(texts, at_once * EACH)
    began, left, served = clock.now(), iter(asks), list[Ask]()

    async def work() -> None:
        for each in left:
            served.append(Ask(each.prompt, (await server.ask(each)).usage.completion_tokens))

    try:
        await run_all([work] * at_once)
    except OverloadedError:
        return None
    seconds = clock.now() - began
    predicted = await clock.in_thread(predict, profile, served, at_once)
    return Check(at_once, len(asks), seconds, predicted)


def predict(profile: Profile, asks: Sequence[Ask], at_once: int) -> float:
    """The seconds that a server with this profile takes for answers of exactly these lengths."""
    service, left = make_service(profile), iter(enumerate(asks))

    async def work() -> None:
        for number, each in left:
            await service.serve(each.prompt, each.tokens, 0, random.Random(number))

    async def all_of_them() -> float:
        await run_all([work] * at_once)
        return clock.now()

    return clock.run(all_of_them, clock="virtual")


def _mixed(texts: Texts, number: int) -> list[Ask]:
    """Prompts of 200 to 2400 characters, half of them with a beginning that three others have too."""
    rng = random.Random(2)
    asks: list[Ask] = []
    shared = ""
    for index in range(number):
        if index % 8 == 0:
            shared = texts.prompt(1200)
        prompt = texts.prompt(rng.randrange(200, 1200))
        asks.append(Ask(shared + prompt if index % 2 else prompt, rng.randrange(8, 65)))
    return asks
