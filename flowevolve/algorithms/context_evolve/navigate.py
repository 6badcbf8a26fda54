"""navigate: what the trajectories of the search say about where to go (ContextEvolve, §4.2, Navigator).

Guidance is made once for a version of the pool, by one step, and shared by all that come by meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import cast

from flowevolve.agents.abstracts import Trajectory, TrajectoryKind, navigate_prompt, read_guidance
from flowevolve.algorithms.context_evolve.config import ContextEvolveConfig
from flowevolve.algorithms.context_evolve.payloads import Step
from flowevolve.algorithms.context_evolve.showing import for_agents
from flowevolve.archives.evolve_buffer import EvolveBuffer
from flowevolve.archives.trajectories import draw_trajectories
from flowevolve.concurrency import Pulse
from flowevolve.context import StageContext
from flowevolve.events import Event
from flowevolve.item import Item
from flowevolve.item_ids import flow_of
from flowevolve.llm.types import JSON, UnparsableReplyError
from flowevolve.stage import Emit
from flowevolve.stages.asking import ask

AGENT = "navigator"
NAVIGATED, GUIDED = "context_evolve.navigated", "context_evolve.guided"
"""Events: whose guidance a step goes by, and guidance that was made. What is kept here is rebuilt from them."""


class Navigate:
    """A step goes by guidance that is at most ``guidance_age`` commits old. From half that age on, the next step to
    come by makes new guidance, and others go on with the old meanwhile; only where that is too old they wait.

    Without a trajectory there is nothing to go by. Where the reply can't be read, the steps that waited for it go
    without guidance, and the next one asks again.
    """

    def __init__(self, buffer: EvolveBuffer, statement: str, config: ContextEvolveConfig, role: str) -> None:
        self._buffer = buffer
        self._statement = statement
        self._config = config
        self._role = role
        self._guidance: dict[int, str] = {}
        """By the version it was made at; empty where the reply could not be read."""
        self._newest: int | None = None
        """The version of the newest that is not."""
        self._makers: dict[int, int] = {}
        """The flows that are at it, by version."""
        self._in_flight: set[int] = set()
        """Flows that came by and have not ended."""
        self._settled = Pulse()

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        step = item.expect(Step)
        self._in_flight.add(item.flow)
        version = await self._guided(item.flow, context)
        guidance = "" if version is None else self._guidance[version]
        yield Emit(replace(step, guidance=guidance, guided=version if guidance else None))

    async def _guided(self, flow: int, context: StageContext) -> int | None:
        """The version whose guidance this step goes by."""
        while True:
            turn = context.decide(NAVIGATED, lambda: self._turn(flow, context))
            version = cast("int | None", turn["version"])
            if version is None:
                return None
            if turn["makes"]:
                await self._make(version, turn, context)
            while version in self._makers:
                await self._settled.wait()
            if version in self._guidance:
                return version

    def _turn(self, flow: int, context: StageContext) -> Mapping[str, JSON]:
        now, age, made = context.pool.version, self._age(), self._newest
        making = max((version for version in self._makers if now - version <= age), default=None)
        if made is not None and now - made <= (age // 2 if making is None else age):
            return {"version": made, "makes": False}
        if making is not None:
            return {"version": making, "makes": False}
        trajectories = self._draw(context)
        if not trajectories:
            return {"version": None, "makes": False}
        self._makers[now] = flow
        return {"version": now, "makes": True, "trajectories": trajectories}

    def _age(self) -> int:
        age = self._config.guidance_age
        return max(0, len(self._in_flight) - 1) if age is None else age

    def _draw(self, context: StageContext) -> list[JSON]:
        settings = self._config.trajectories
        found = self._buffer.trajectories(settings.ends, settings.steps)
        drawn = draw_trajectories(found, settings.count, settings.weights, context.random)
        return [{"kind": each.kind, "programs": list(each.programs), "changes": list(each.changes)} for each in drawn]

    async def _make(self, version: int, turn: Mapping[str, JSON], context: StageContext) -> None:
        """Ask the Navigator. Where that fails for good the step ends, and with its flow the claim to this version."""
        trajectories = [_read(each) for each in cast("list[dict[str, JSON]]", turn["trajectories"])]
        names = dict.fromkeys(name for each in trajectories for name in each.programs)
        programs = {name: for_agents(context.pool[name]) for name in names}
        prompt = navigate_prompt(self._statement, programs, trajectories)
        try:
            guidance = await ask(context, self._role, prompt, read_guidance, agent=AGENT)
        except UnparsableReplyError:
            guidance = ""
        context.log(GUIDED, version=version, guidance=guidance)
        self._settle(version, guidance)

    def _settle(self, version: int, guidance: str) -> None:
        self._guidance[version] = guidance
        if guidance:
            self._newest = version if self._newest is None else max(version, self._newest)
        self._makers.pop(version, None)
        self._settled.fire()

    def recall(self, event: Event) -> None:
        """Rebuild what there was in a run that was interrupted."""
        if event.kind == NAVIGATED:
            flow = flow_of(str(event.data["item"]))
            self._in_flight.add(flow)
            if event.data["makes"]:
                self._makers[cast(int, event.data["version"])] = flow
        elif event.kind == GUIDED:
            self._settle(cast(int, event.data["version"]), str(event.data["guidance"]))

    def flow_ended(self, flow: int) -> None:
        self._in_flight.discard(flow)
        for version in [version for version, maker in self._makers.items() if maker == flow]:
            del self._makers[version]
        self._settled.fire()


def _read(data: Mapping[str, JSON]) -> Trajectory:
    programs, changes = cast("list[str]", data["programs"]), cast("list[float | None]", data["changes"])
    return Trajectory(cast(TrajectoryKind, data["kind"]), tuple(programs), tuple(changes))
