"""A configuration that can be run: everything it names is resolved, before anything is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve.config.prices import price_table
from flowevolve.config.roles import ResolvedRole, model_names
from flowevolve.config.run import Config, modules_beside
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.policies import FlowBound, StalenessPolicy
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.core.task import Task
from flowevolve.core.templates import Templates
from flowevolve.engine.recovery.state import Start
from flowevolve.journal.starting_pool import changed_scoring, read_start
from flowevolve.llm.client.accounting import Price
from flowevolve.policies.flows import AIMS
from flowevolve.prompts.shipped import read_templates
from flowevolve.runner.assemble import make_algorithm, make_staleness, make_task
from flowevolve.runner.backend_checks import check_backend, check_keys, check_names, check_open_files
from flowevolve.runner.clients import OpenRoles
from flowevolve.runner.llm import make_roles, open_roles
from flowevolve.runner.result_parts import HeldOut
from flowevolve.runner.task_checks import check_parts, check_task
from flowevolve.tasks.other_seed import with_seed


@dataclass(frozen=True, slots=True)
class ProvidedObjects:
    """What was given as an object, instead of by its name in the configuration."""

    task: Task | None = None
    staleness: StalenessPolicy | None = None

    def names(self) -> list[str]:
        """The names of the parts that were given as objects. To go on with a run, they have to be given again."""
        return [name for name in ("task", "staleness") if getattr(self, name) is not None]


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration that can be run, with everything that it names: resolved once, before anything is opened."""

    config: Config
    given: ProvidedObjects
    task: Task
    algorithm: Algorithm
    staleness: StalenessPolicy
    templates: Templates
    roles: Mapping[str, ResolvedRole]
    prices: Mapping[str, Price]
    """The prices of models, by name."""
    open_roles: OpenRoles
    """Opens the roles."""
    trust: ScoreTrust | None = None
    """Whether programs could forge their scores, as an interrupted run found; None if the run is to find out."""
    held_out: HeldOut | None = None
    """What the test at the end of the run came to, if it has ended before and is resumed."""


def make_plan(
    config: Config,
    given: ProvidedObjects,
    *,
    algorithm: Callable[[Config, Task], Algorithm] = make_algorithm,
    opens_roles: OpenRoles | None = None,
) -> Plan:
    """Resolve a configuration. ``algorithm`` makes the algorithm that it names, ``opens_roles`` opens the LLM roles.

    By default, roles are opened on transports to servers, whose keys have to be available.

    Raises:
        InputError: if the configuration can't be run.
    """
    check_config(config, "run")
    with modules_beside(config):
        roles = make_roles(config)
        check_backend(config, roles)
        check_open_files(config, roles.values())
        task = make_task(config) if given.task is None else given.task
        check_task(task, "run")
        check_parts(task)
        if config.branch is not None:
            task = with_seed(task, config.branch.texts, "branch.texts")
        if config.held_out and not task.data.test:
            raise InputError(f"held_out: task {task.name!r} has no test examples; give it some, or leave held_out out")
        made = algorithm(config, task)
        if config.staleness.policy == "reflective" and made.graph().repair is None:
            raise InputError(
                f"staleness.policy: algorithm {made.name!r} has no stage that repairs stale work, so 'reflective' "
                "would let everything through; set it to 'full' or 'guarded'"
            )
        staleness = make_staleness(config, made.staleness) if given.staleness is None else given.staleness
        templates = read_templates(config.prompts.dir, config.prompts.max_tokens, config.prompts.max_text_tokens)
        prices = price_table(config, model_names(roles.values()))
        if opens_roles is None:
            check_names(roles.values())
            check_keys(roles.values())
        return Plan(config, given, task, made, staleness, templates, roles, prices, opens_roles or open_roles)


def flows_of(config: Config, algorithm: Algorithm) -> int | FlowBound:
    """How many flows may be open at once, or what decides it."""
    section = config.algorithm
    if section.mode == "sync":
        return section.width
    if section.max_in_flight != "auto":
        return section.max_in_flight
    return algorithm.flow_bound or AIMS[section.aim]


def is_named_by_folder(config: Config) -> bool:
    """Whether the task has the name of the folder that it is in."""
    return "folder" in config.task.settings


async def start_of(plan: Plan, note: Callable[[str], None]) -> Start | None:
    """The pool to start from, if the configuration names one. ``note`` gets a line if what scores candidates has
    changed since their scores were made.
    """
    named = plan.config.start
    if named is None:
        return None
    read = partial(read_start, named_by_folder=is_named_by_folder(plan.config))
    start = await in_thread(read, named.run, named.version, plan.algorithm.name, plan.task)
    if changed := await in_thread(changed_scoring, named.run, plan.task):
        note(
            f"start.run: {' and '.join(changed)} changed since {named.run} began, and its scores are taken over as "
            "they are; to have everything scored anew, start without the pool of that run"
        )
    return start


def check_config(config: object, function: str) -> None:
    """Raises: InputError if what ``function`` was given as a configuration is none."""
    if not isinstance(config, Config):
        raise InputError(
            f"{function}: config is {config!r:.60}; give a flowevolve.Config, or flowevolve.load_config(path) of a file"
        )
