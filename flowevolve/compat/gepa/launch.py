"""From checked arguments to a run: its configuration, the reflection role, and gepa's result at the end."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from anyio.from_thread import start_blocking_portal
from gepa.core.result import GEPAResult
from gepa.logging.logger import Logger, LoggerProtocol
from gepa.proposer.reflective_mutation.base import LanguageModel
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from flowevolve._util import clock as clocks, garbage as collector
from flowevolve._util.clock import in_thread
from flowevolve._util.errors import (
    EndedInThreadError,
    FlowevolveError,
    InputError,
    StageError,
    drop_our_frames,
    for_a_script,
)
from flowevolve._util.registry import describe_validation
from flowevolve.compat.gepa.algorithm import AdapterGEPA, AdapterTask, Parts
from flowevolve.compat.gepa.data import AnyId
from flowevolve.compat.gepa.reflection import CALLABLE, ROLE, CallableTransport
from flowevolve.config.key_errors import misplaced_key
from flowevolve.config.llm import LLMSettings
from flowevolve.config.roles import ResolvedRole
from flowevolve.config.run import Config, parse_config, parse_recorded
from flowevolve.core.events import Event, Log
from flowevolve.core.stop_reasons import EXHAUSTED, UNPRODUCTIVE
from flowevolve.core.task import Task
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.runner.assemble import make_tuning
from flowevolve.runner.backend_checks import OPENAI_PREFIX
from flowevolve.runner.clients import OpenRoles, SideTask
from flowevolve.runner.interrupts import until_interrupted
from flowevolve.runner.plan import Plan, ProvidedObjects, make_plan
from flowevolve.runner.resume import is_run, resume
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.runner.vllm_server import OurServers

NO_LIMIT = 2**53
"""The limit of metric calls if only stoppers end a run, because a configuration needs some limit; also for merges."""
ALIASES = {"api_base": "base_url", "timeout": "timeout_seconds"}
"""Names that gepa's users know for some of our settings."""


@dataclass(frozen=True, slots=True)
class Reflecting:
    """The reflection role: its ``[llm]`` section, and what opens it."""

    section: Mapping[str, object]
    opens_roles: OpenRoles | None
    """None: transports to servers, as for any other role."""


def reflecting(model: LanguageModel | str | None, settings: Mapping[str, object], concurrency: int) -> Reflecting:
    """The reflection role for a callable, or for a model's name behind an OpenAI-compatible endpoint. With None there
    is no role.

    Raises:
        InputError: if the settings are not those of an ``[llm]`` section.
    """
    if isinstance(model, str):
        return Reflecting(_section(model, settings), None)
    if settings:
        raise InputError(
            f"reflection_lm_kwargs: settings ({', '.join(settings)}) need a reflection_lm that is given by its name; "
            "leave them out"
        )

    @asynccontextmanager
    async def open_callable(
        config: Config, roles: Mapping[str, ResolvedRole], ours: OurServers | None, log: Log
    ) -> AsyncIterator[Mapping[str, Role]]:
        if model is None:
            yield {}
        else:
            transport = CallableTransport(model, concurrency)
            yield {ROLE: Model(transport, CALLABLE, send_seed=False)}

    return Reflecting({"backend": "openai", "model": CALLABLE, "concurrency": concurrency}, open_callable)


def _section(model: str, settings: Mapping[str, object]) -> dict[str, object]:
    known = {ALIASES.get(name, name): value for name, value in settings.items()}
    here = "base_url" in known or "base_urls" in known
    if "/" in model and not here and not model.startswith(OPENAI_PREFIX):
        raise InputError(
            f"reflection_lm: {model!r} names a provider; give its OpenAI-compatible endpoint in "
            "reflection_lm_kwargs={'base_url': …}, or a callable, such as gepa.lm.LM(…)"
        )
    model = model.removeprefix(OPENAI_PREFIX)  # as in gepa
    section = {"backend": "openai", "model": model, **known}
    try:
        LLMSettings.model_validate(section)
    except ValidationError as error:
        what = misplaced_key(error) or describe_validation(error, known=list(LLMSettings.model_fields))
        raise InputError(f"reflection_lm_kwargs: {what}") from None
    return section


def make_config(
    task: AdapterTask,
    section: Mapping[str, object],
    *,
    seed: int,
    mode: str,
    width: int | None,
    staleness: str | None,
    most: int | None,
) -> Config:
    """A run's configuration. Its table ``task`` has to be the same when the run is resumed.

    Raises:
        InputError: naming the argument that is wrong.
    """
    return parse_config(
        {
            "seed": seed,
            "task": {
                "name": task.name,
                "seed_candidate": task.seed().id,
                "trainset": len(task.data.train),
                "valset": len(task.data.val),
            },
            "preset": "plain",
            "algorithm": {"name": "gepa", "mode": mode, "max_in_flight": width or "auto", "width": width or 1},
            "llm": section,
            "staleness": {"policy": staleness},
            "budget": {"rollouts": most or NO_LIMIT},
        },
        "optimize",
    )


class Bar(Progress):
    """A progress bar of metric calls on standard error, which is also a gepa callback.

    It is shown while it is entered. ``most`` metric calls make it full; None if the total is unknown.
    """

    def __init__(self, most: int | None) -> None:
        columns = (TextColumn("metric calls"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=Console(stderr=True))
        self._calls = self.add_task("metric calls", total=most)

    def on_budget_updated(self, event: Mapping[str, int]) -> None:
        self.update(self._calls, completed=event["metric_calls_used"])

    def on_optimization_end(self, event: Mapping[str, int]) -> None:
        """Show the total of a run that had ended before, as it makes no more calls."""
        self.update(self._calls, completed=event["total_metric_calls"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One run over an adapter."""

    config: Config
    task: AdapterTask
    parts: Parts
    roles: OpenRoles | None
    run_dir: Path | None
    logger: LoggerProtocol
    shown: Sequence[AbstractContextManager[object]]
    """Context managers for the duration of the run: a progress bar, and what reports to tracking servers."""

    def run(self) -> GEPAResult[object, AnyId]:
        """Run it, in a thread of its own if an event loop is running in this one.

        Raises:
            FlowevolveError: if the run failed. An exception of the adapter that ends the run is raised as it is.
        """
        try:
            return self._run_and_tell()
        except FlowevolveError as error:
            explained = error
            if isinstance(error, InputError) and str(error).startswith("llm."):
                explained = InputError(f"{error} (settings of llm are given in reflection_lm_kwargs)")
            raise for_a_script(explained) from explained.__cause__
        except Exception as error:
            drop_our_frames(error)  # it is the adapter's, or a strategy's
            raise

    def _run_and_tell(self) -> GEPAResult[object, AnyId]:
        self.logger.log(self._advice())
        mirror = self.parts.mirror
        with ExitStack() as stack:
            for each in (_opened(self.logger), *self.shown):
                stack.enter_context(each)
            mirror.start(self.task.seed(), len(self.parts.train.loader), self.config.seed)
            try:
                self._run_to_the_end()
            except KeyboardInterrupt:
                self.logger.log(f"flowevolve: interrupted; {self._parting() or 'without run_dir nothing is kept'}")
                raise
            except Exception:
                if mirror.calls and self.run_dir is not None:
                    self.logger.log(f"flowevolve: failed; {self._parting()}")
                raise
            mirror.tell(
                "on_optimization_end",
                best_candidate_idx=self.parts.policy.get_best_program(mirror.state),
                total_iterations=mirror.state.i,
                total_metric_calls=mirror.calls,
                final_state=mirror.state,
            )
        return GEPAResult.from_state(
            mirror.state, run_dir=None if self.run_dir is None else str(self.run_dir), seed=self.config.seed
        )

    def _run_to_the_end(self) -> None:
        """Raises: KeyboardInterrupt, SystemExit: at Ctrl-C, or if the adapter raised one."""
        try:
            if clocks.is_running():
                self._run_beside()
            else:
                self._run_here()
        except EndedInThreadError as error:  # of the reflection function
            raise error.ended from None
        if self.parts.adapter.ended is not None:
            raise self.parts.adapter.ended

    def _run_here(self) -> None:
        """Run it on a loop in this thread.

        Raises:
            KeyboardInterrupt: at Ctrl-C, unless the program handles SIGINT itself. If a call of the adapter is still
                running then, that is handled as in `flowevolve.runner.interrupts.until_interrupted`.
        """
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not _in_main_thread():
            clocks.run(self._run)
        elif not clocks.run(partial(until_interrupted, self._run, numbers=[signal.SIGINT], parting=self._parting)):
            raise KeyboardInterrupt

    def _run_beside(self) -> None:
        """Run it on a loop in another thread. An interrupt of this thread cancels it."""
        with collector.seldom(), start_blocking_portal() as portal:
            portal.call(self._run)

    def _parting(self) -> str:
        """What somebody who has ended the run can do next; empty if nothing of the run is kept."""
        if self.run_dir is None:
            return ""
        return f"what was done is in {self.run_dir}: to go on, call optimize with the same arguments again"

    def _advice(self) -> str:
        concurrency = self.parts.adapter.concurrency
        if concurrency > 1:
            flows = self.config.algorithm.max_in_flight
            most = "as many as there is use for" if flows == "auto" else f"max_in_flight={flows} at most"
            return f"flowevolve: up to {concurrency} adapter calls run at a time; open iterations: {most}"
        return (
            "flowevolve: adapter calls are made one at a time, which is safe for every adapter; if yours may be called "
            "from several threads at once, adapter_concurrency=8 is faster"
        )

    def _stopper(self) -> str:
        """What ended the run before its limit, in words."""
        file = None if self.run_dir is None else self.run_dir / "gepa.stop"
        return "a stop callback" if file is None or not file.exists() else f"the file {file}, which is there,"

    async def _run(self, _: SideTask | None = None) -> Literal[True]:
        """Run it to its end, or until the adapter ends it. Exceptions of the user's objects are raised as they are."""
        with self.parts.adapter.cutting_off():
            raised = await self._failure_of_stage()
            if raised is not None:
                raise raised
        return True

    async def _failure_of_stage(self) -> BaseException | None:
        """Run it, and return the exception of the user's objects that ended it in a stage; None if there was none."""
        try:
            await self._begin_or_go_on()
        except StageError as error:
            return error.__cause__ or error
        return None

    async def _begin_or_go_on(self) -> None:
        watchers = Watchers(events=(self.parts.mirror.event, self._tell))
        if self.run_dir is not None and is_run(self.run_dir):
            self.logger.log(
                f"flowevolve: going on with the run in {self.run_dir}, and nothing that it has evaluated is evaluated "
                "again; give another run_dir to begin anew"
            )
            await in_thread(_check_same_arguments, self.run_dir, self.config)
            await resume(
                self.run_dir,
                config=self.config,
                task=self.task,
                watchers=watchers,
                again=True,
                note=lambda said: self.logger.log(f"flowevolve: {said}"),
                names=lambda setting: "max_metric_calls=…" if setting == "budget.rollouts" else setting,
                plan=self._plan,
            )
            return
        table, sync = self.config.model_dump(mode="json"), self.config.journal.sync
        given = ProvidedObjects(self.task)
        keep = (
            None if self.run_dir is None else partial(RunDirectory, self.run_dir, table, sync=sync, given=given.names())
        )
        await run_plan(self._plan(self.config, given), keep, watchers, None)

    def _plan(self, config: Config, given: ProvidedObjects) -> Plan:
        def algorithm(config: Config, task: Task) -> AdapterGEPA:
            return AdapterGEPA(self.task, self.parts, make_tuning(config))

        return make_plan(config, given, algorithm=algorithm, opens_roles=self.roles)

    def _tell(self, event: Event) -> None:
        """An event sink that logs what gepa's users look for in its log."""
        data = event.data
        match event.kind:
            case "pool.commit":
                number, best = len(self.parts.mirror.state.program_candidates) - 1, data["best_score"]
                self.logger.log(
                    f"flowevolve: candidate {number} has entered the pool; the best validation score is {best}"
                )
            case "rollout.failed" | "gepa.reflection_failed":
                self.logger.log(f"flowevolve: {data['reason']}")
            case "gepa.empty_text":
                component = data["component"]
                self.logger.log(
                    f"flowevolve: the reply for {component} is empty, and an empty text is tried, as gepa does"
                )
            case "gepa.merge_skipped":
                self.logger.log(f"flowevolve: a merge was skipped, as gepa could not draw it: {data['reason']}")
            case "run.stopping":
                reason = str(data["reason"])
                why = {
                    "rollouts": "; what is left of the limit is not enough for another iteration",
                    UNPRODUCTIVE: "; the last iterations brought no proposal",
                    EXHAUSTED: f"; {self._stopper()} said so",
                }
                calls = self.parts.mirror.calls
                self.logger.log(f"flowevolve: stopping ({reason}); {calls} metric calls so far{why.get(reason, '')}")
            case _:
                pass


def _check_same_arguments(run_dir: Path, config: Config) -> None:
    """Raises: InputError if the existing run was begun with other values of arguments that its scores depend on."""
    with RecordedRun(run_dir) as recorded:
        before = parse_recorded(recorded.config, f"{run_dir}/config.toml")
    old, new = before.task.model_dump(), config.task.model_dump()
    words = {
        "name": "adapter is of class {new}, but was of {old}",
        "seed_candidate": "seed_candidate is another one",
        "trainset": "the number of examples in trainset is {new}, but was {old}",
        "valset": "the number of examples in valset is {new}, but was {old}",
    }
    changed = [
        said.format(new=new.get(name), old=old.get(name))
        for name, said in words.items()
        if new.get(name) != old.get(name)
    ]
    if config.seed != before.seed:
        changed.append(f"seed is {config.seed}, but was {before.seed}")
    if changed:
        raise InputError(
            f"run_dir: the run in {run_dir} can't go on with changed arguments: {'; '.join(changed)}. Give them as "
            "they were, or give another directory"
        )


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _opened(logger: LoggerProtocol) -> AbstractContextManager[object]:
    return logger if isinstance(logger, Logger) else nullcontext()
