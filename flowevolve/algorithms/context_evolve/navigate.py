"""navigate: has guidance for the next programs written from the search's trajectories (ContextEvolve, §4.2, Navigator).

One step has the guidance for a version of the pool written, and all steps that arrive meanwhile share it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from flowevolve._util.tasks import Pulse
from flowevolve.algorithms.context_evolve.config import ContextEvolveConfig
from flowevolve.algorithms.context_evolve.evolve_buffer import EvolveBuffer, draw_trajectories, in_words
from flowevolve.algorithms.context_evolve.payloads import Step
from flowevolve.core.assessment import Assessment
from flowevolve.core.context import StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.abstracts import ABSTRACT, Trajectory, navigate_prompt, read_guidance
from flowevolve.prompts.programs import ShownProgram
from flowevolve.stages import as_shown, ask

AGENT = "navigator"


class Navigated(Record, kind="context_evolve.navigated"):
    """The version whose guidance a step uses, None if there is none, and whether the step has it written."""

    version: int | None
    makes: bool
    trajectories: tuple[Trajectory, ...] = ()


class Guided(Record, kind="context_evolve.guided"):
    """The guidance written at a version of the pool; empty if the reply could not be read."""

    version: int
    guidance: str


class Navigate:
    """Gives each step guidance that is at most ``guidance_age`` commits old. Once the newest guidance is older than
    half of that, the next step to arrive has new guidance written. Meanwhile, other steps use the old guidance, and
    wait only if it is too old.

    Without a trajectory there is no guidance. If the reply can't be read, the steps that waited for it go on without
    guidance, and the next step asks again. All state follows from events.
    """

    def __init__(self, buffer: EvolveBuffer, statement: str, config: ContextEvolveConfig, role: str) -> None:
        self._buffer = buffer
        self._statement = statement
        self._config = config
        self._role = role
        self._guidance: dict[int, str] = {}
        """Guidance by the version at which it was written; empty if the reply could not be read."""
        self._newest: int | None = None
        """The version of the newest guidance that could be read."""
        self._makers: dict[int, int] = {}
        """The flows that are making guidance, by version."""
        self._in_flight: set[int] = set()
        """Flows that have reached this stage and not ended yet."""
        self._maker_ended = Pulse()

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        step = item.expect(Step)
        version = await self._guided(item.flow, context)
        guidance = "" if version is None else self._guidance[version]
        yield Emit(replace(step, guidance=guidance, guided=version if guidance else None))

    async def _guided(self, flow: int, context: StageContext) -> int | None:
        """The version whose guidance this step uses; None if there is none."""
        while True:
            turn = context.decide(Navigated, lambda: self._turn(flow, context))
            version = turn.version
            if version is None:
                return None
            if turn.makes:
                await self._make(version, turn, context)
            while self._makers.get(version, flow) != flow:  # a repeated step may itself be the maker by now
                await self._maker_ended.wait()
            if version in self._guidance:
                return version

    def _turn(self, flow: int, context: StageContext) -> Navigated:
        now, age, made = context.pool.version, self._age(flow), self._newest
        making = max((version for version in self._makers if now - version <= age), default=None)
        if made is not None and now - made <= (age // 2 if making is None else age):
            return Navigated(version=made, makes=False)
        if making is not None:
            return Navigated(version=making, makes=False)
        trajectories = self._draw(context)
        if not trajectories:
            return Navigated(version=None, makes=False)
        return Navigated(version=now, makes=True, trajectories=tuple(trajectories))

    def _age(self, flow: int) -> int:
        age = self._config.guidance_age
        return len(self._in_flight - {flow}) if age is None else age

    def _draw(self, context: StageContext) -> list[Trajectory]:
        settings = self._config.trajectories
        found = self._buffer.trajectories(settings.ends, settings.steps)
        return draw_trajectories(found, settings.count, settings.weights, context.random)

    async def _make(self, version: int, turn: Navigated, context: StageContext) -> None:
        """Ask the Navigator. If the call fails for good, the step ends, and its flow no longer counts as the maker of
        this version's guidance.
        """
        names = dict.fromkeys(name for each in turn.trajectories for name in each.programs)
        programs = {name: for_agents(context.pool[name]) for name in names}
        prompt = navigate_prompt(context.templates, self._statement, programs, turn.trajectories)
        try:
            guidance = await ask(context, self._role, prompt, read_guidance, agent=AGENT)
        except UnparsableReplyError:
            guidance = ""
        context.log(Guided(version=version, guidance=guidance))

    def apply_event(self, event: Event) -> None:
        """Note which flows make guidance, what they made, and which flows have ended."""
        match event.body:
            case OwnEvent(kind=Navigated.kind, data=data, item=item):
                turn, flow = Navigated.from_json(data), flow_of(item)
                self._in_flight.add(flow)
                if turn.makes and turn.version is not None:
                    self._makers[turn.version] = flow
            case OwnEvent(kind=Guided.kind, data=data):
                made = Guided.from_json(data)
                self._guidance[made.version] = made.guidance
                if made.guidance:
                    self._newest = made.version if self._newest is None else max(made.version, self._newest)
                self._makers.pop(made.version, None)
                self._maker_ended.fire()
            case FlowClosed(flow):
                self._in_flight.discard(flow)
                self._makers = {version: maker for version, maker in self._makers.items() if maker != flow}
                self._maker_ended.fire()
            case _:
                pass


def for_agents(program: Candidate) -> ShownProgram:
    """A program as agents see it: its abstract, or its code if it has none, and its score, or how it failed."""
    words, failure = in_words(program), Assessment.of(program).failure or ""
    return ShownProgram({ABSTRACT: words} if words else program.artifact, as_shown(program).score, failure)
