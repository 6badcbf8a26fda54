"""Checking what a run needs, without running it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from flowevolve._util.logger import logging_notes
from flowevolve.config.run import Config, modules_beside
from flowevolve.core.task import OnMachines, Task
from flowevolve.engine.contract import check_gathering
from flowevolve.programs.task import ProgramTask
from flowevolve.runner.assemble import make_allocation
from flowevolve.runner.clients import open_clients
from flowevolve.runner.in_use import in_use
from flowevolve.runner.llm import check_roles, open_response_cache
from flowevolve.runner.plan import ProvidedObjects, flows_of, make_plan, start_of
from flowevolve.runner.vllm_server import starts_vllm


async def check(config: Config, task: Task | None = None, note: Callable[[str], None] | None = None) -> Task:
    """Build everything a run needs and reach its backends, without spending a token; returns the task.

    For a vLLM that the run would start itself, it is only checked that it could be started; no Slurm job is submitted.
    ``note`` is called with a line on what can't be checked this way, such as whether a backend without a list of models
    serves a model (by default, the line is logged), on machines that are waited for, and on scores of another run that
    are taken over though what made them has changed.

    Raises:
        InputError, BackendUnreachableError, BackendRefusedError: as `run` would, and also for one of several endpoints
            without which a run would still begin.
    """
    plan = make_plan(config, ProvidedObjects(task))
    check_roles(plan.config)
    with modules_beside(config):
        check_gathering(plan.algorithm.graph(), flows_of(config, plan.algorithm), config.algorithm.mode)
        make_allocation(config)
        await start_of(plan, note or logging_notes("check.note"))
        if starts_vllm(config):
            from flowevolve.vllm.serving import check_vllm  # noqa: PLC0415 - few runs start a server

            await check_vllm(config.vllm)
            return plan.task
        async with (
            _checked(plan.task, note or logging_notes("check.note")),
            in_use(plan.algorithm),
            open_response_cache(config) as cache,
            open_clients(config, plan.roles, plan.prices, plan.open_roles, cache) as clients,
        ):
            await clients.llm.check(note)
            clients.traffic.check()
    return plan.task


@asynccontextmanager
async def _checked(task: Task, note: Callable[[str], None]) -> AsyncIterator[None]:
    """Check that a run could use a task, by entering its context. A task of programs is checked by its ``check``."""
    if isinstance(task, ProgramTask):
        await task.check(note)
        yield
        return
    if isinstance(task, OnMachines):
        task.watch_machines(note)
    async with in_use(task):
        yield
