"""Replaying a run: its recorded replies and latencies on the virtual clock, under other workers, policies and limits.

The task, its prompts and the seed stay those of the run, so that as many requests as possible were recorded
(`flowevolve.sim.replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from flowevolve._util.clock import in_thread, is_virtual
from flowevolve._util.errors import InputError
from flowevolve.config.llm import CacheSettings
from flowevolve.config.run import Config, parse_recorded, with_overrides
from flowevolve.config.table import is_among
from flowevolve.core.calls import HELD_OUT
from flowevolve.core.graph import Graph
from flowevolve.core.policies import StalenessPolicy
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.core.task import Task
from flowevolve.journal.journal import EMBEDDED
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.journal.tables import WRITABLE
from flowevolve.llm.client.accounting import Account, Price
from flowevolve.runner.assemble import make_algorithm
from flowevolve.runner.clients import SideTask
from flowevolve.runner.llm import make_recorded_roles
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.resume_checks import PLACES
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.runner.trust import earlier_trust
from flowevolve.sim.replay import RecordedServer, ReplayableCalls, ReplayedCall
from flowevolve.telemetry.comparison import Figures, Measurement

MAY_CHANGE = (
    "algorithm.max_in_flight",
    "algorithm.aim",
    "algorithm.mode",
    "algorithm.width",
    "allocation",
    "budget",
    "llm.concurrency",
    "llm.prices",
    "llm.prices_file",
    "racing",
    "scheduler",
    "speculation",
    "stages",
    "staleness",
    *PLACES,
)
"""Settings and sections that may differ from the recorded run's."""


@dataclass(frozen=True, slots=True)
class Replies:
    """Where the replies of a replay came from."""

    matched: int
    """How many were recorded for the same requests."""
    stand_ins: int
    """How many were recorded for other requests, so that their contents mean nothing."""
    peak_in_flight: int
    """The most requests the replay's server worked on at once."""
    recorded_peak_in_flight: int
    slowing: float
    """What each request in flight adds to latencies, as a fraction of an idle server's, as far as the record shows."""

    @property
    def matched_share(self) -> float:
        return self.matched / max(1, self.matched + self.stand_ins)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A finished replay: its result, and the figures of the recorded run and of the replay, both at the replay's
    prices.
    """

    result: Result
    replies: Replies
    recorded: Figures
    replayed: Figures

    @property
    def notes(self) -> list[str]:
        """What has to be known to read the figures."""
        programs = [] if self.result.score_trust is None else [_PROGRAMS_NOTE]
        measured = [_MEASURED_NOTE] if programs and self.replies.stand_ins else []
        return [_replies_note(self.replies), *measured, _load_note(self), *programs]


async def replay(
    directory: Path | str,
    *,
    changes: Sequence[str] = (),
    slots: int | None = None,
    out: Path | str | None = None,
    task: Task | None = None,
    staleness: StalenessPolicy | None = None,
    watchers: Watchers | None = None,
    side_task: SideTask | None = None,
) -> Replayed:
    """Run the recorded run in a directory once more, with ``key=value`` ``changes`` to its settings. Must be awaited on
    the virtual clock. The run may be going on; its directory is only read.

    The recorded server works on ``slots`` requests at once, by default on as many as ``llm.concurrency`` allows. What
    was given to the run as an object has to be given again. With ``out``, the replay leaves a run directory there.

    Raises:
        InputError: if there is no run that can be replayed, or the changes can't be made.
    """
    if not is_virtual():
        raise InputError("replay needs the virtual clock; call it with flowevolve.clock.run(…, clock='virtual')")
    if slots is not None and slots < 1:
        raise InputError(f"--slots is {slots}, but has to be at least 1")
    directory = Path(directory)
    past = await in_thread(_read, directory)
    given = ProvidedObjects(task, staleness)
    _check_given(directory, past.given, given, changes)
    config = _changed(past.config, changes)
    plan = make_plan(config, given)
    graph = make_algorithm(config, plan.task).graph()
    recorded = await in_thread(_measure, directory, plan.prices, graph)
    server, roles = make_recorded_roles(config, plan.roles, past.record, slots)

    def about() -> dict[str, object]:
        return {"of": str(directory), "slots": slots, **asdict(_replies(server, past.record))}

    keep = None if out is None else partial(_ReplayDirectory, Path(out), config.model_dump(mode="json"), about)
    measured, watchers = Measurement(graph), watchers or Watchers()
    watchers = replace(watchers, events=[*watchers.events, measured.event])
    plan = replace(plan, open_roles=lambda *_: nullcontext(roles), trust=past.trust)
    result = await run_plan(plan, keep, watchers, side_task)
    return Replayed(result, _replies(server, past.record), recorded, measured.figures(result.llm))


class _ReplayDirectory(RunDirectory):
    """A run directory whose ``result.json`` says that it is a replay, and of which run."""

    def __init__(self, path: Path, config: Mapping[str, object], about: Callable[[], Mapping[str, object]]) -> None:
        super().__init__(path, config)
        self._about = about

    def write_result(self, result: Mapping[str, object]) -> None:
        super().write_result({**result, "replay": self._about()})


@dataclass(frozen=True, slots=True)
class _ReplaySource:
    """What a replay needs from a recorded run."""

    config: Config
    given: frozenset[str]
    record: ReplayableCalls
    trust: ScoreTrust


def _read(directory: Path) -> _ReplaySource:
    with RecordedRun(directory) as recorded:
        if recorded.schema not in WRITABLE:
            raise InputError(
                f"{directory}: its journal was written by an earlier version of flowevolve (schema {recorded.schema}); "
                f"only journals of schema {WRITABLE[0]} and later can be replayed"
            )
        recorded.check()
        start, given, record = recorded.start, recorded.given, ReplayableCalls(_recorded_calls(recorded))
        if start is None or given is None or not record.can_stand_in:
            raise InputError(f"{directory}: there is nothing to replay, as no LLM has answered a call of this run")
        config = parse_recorded(recorded.config, f"{directory}/config.toml")
    return _ReplaySource(config, given, record, earlier_trust(start))


def _recorded_calls(recorded: RecordedRun) -> Iterator[ReplayedCall]:
    for call in recorded.calls():
        if call.messages is None or (call.reply is None and call.error is None):
            raise InputError(
                f"{recorded.path}: its journal was compacted, so the texts of its calls, which a replay needs, are gone"
            )
        if any(message.role == EMBEDDED for message in call.messages):
            raise InputError(f"{recorded.path}: this run asked for embeddings, which a replay can't answer")
        yield ReplayedCall(
            call.role, call.model, call.messages, call.seed, call.answer, call.error, call.started, call.finished
        )


def _measure(directory: Path, prices: Mapping[str, Price], graph: Graph) -> Figures:
    """The recorded run's figures at these prices. Like those of a result, they leave out the held-out test."""
    measured, account = Measurement(graph), Account(prices)
    with RecordedRun(directory) as recorded:
        account.restore(spent for spent in recorded.totals() if spent.stage != HELD_OUT)
        for event in recorded.events():
            measured.event(event)
    return measured.figures(account.totals())


def _changed(config: Config, changes: Sequence[str]) -> Config:
    """The replay's configuration: changed as asked, on the virtual clock, and without anything that reaches outside."""
    for change in changes:
        key = change.partition("=")[0].strip()
        if not is_among(key, MAY_CHANGE):
            raise InputError(f"--set {change}: a replay can't change {key}, only {', '.join(MAY_CHANGE)}")
    config = with_overrides(config, changes)
    llm = config.llm.model_copy(update={"backend": "replay", "settings": {}, "cache": CacheSettings(), "hedge": 0.0})
    stopping = config.stopping.model_copy(update={"file": None})
    return config.model_copy(update={"clock": "virtual", "llm": llm, "stopping": stopping})


def _check_given(directory: Path, before: frozenset[str], given: ProvidedObjects, changes: Sequence[str]) -> None:
    named = {change.partition(".")[0].strip() for change in changes}
    missing = sorted(before.difference(map(str, given.names()), named))
    if missing:
        raise InputError(
            f"{directory}: this run's {' and '.join(missing)} {'was' if len(missing) == 1 else 'were'} given in "
            f"Python, so replay it from there, with flowevolve.replay({str(directory)!r}, "
            f"{', '.join(f'{name}=…' for name in missing)})"
        )


def _replies(server: RecordedServer, record: ReplayableCalls) -> Replies:
    return Replies(server.matched, server.stand_ins, server.peak, record.peak, record.slowing)


_MEASURED_NOTE = (
    "stand-ins: a request that shows what a program's run measured, such as the evaluator's times, is never the same "
    "twice, so it gets a stand-in, and so do those that follow from it"
)
_PROGRAMS_NOTE = (
    "programs: they are run again, but take no time in a replay. If running them took much of the "
    "recorded time, the replay is too fast"
)


def _replies_note(replies: Replies) -> str:
    if not replies.stand_ins:
        return f"replies: all {replies.matched} are those recorded for the same requests"
    total = replies.matched + replies.stand_ins
    return (
        f"replies: {replies.matched} of {total} ({replies.matched_share:.0%}) are those recorded for the same "
        f"requests; the other {replies.stand_ins} are stand-ins, recorded for requests like them: scores mean nothing "
        "here, only time, throughput and cost do, and these roughly"
    )


def _load_note(replayed: Replayed) -> str:
    replies = replayed.replies
    mean, most = replayed.recorded.mean_in_flight, replies.recorded_peak_in_flight
    note = (
        f"latencies: recorded with {mean:.1f} requests in flight on average, at most {most}; replayed with "
        f"{replayed.replayed.mean_in_flight:.1f}, of which the server worked on at most {replies.peak_in_flight}. "
    )
    if replies.slowing:
        note += f"By the record each request in flight adds {replies.slowing:.2%} of an idle server's latency"
    else:
        note += "The record shows no effect of load on latency, so they are taken as they were"
    beyond = replies.peak_in_flight > most
    return note + (
        f". WARNING: with more than {most} in flight, latencies are a guess, and likely too short" if beyond else ""
    )
