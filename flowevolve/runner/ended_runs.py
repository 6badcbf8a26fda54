"""Whether a run that has ended can go on, and what has to be changed for that."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path

from flowevolve._util.errors import FROM_ITS_POOL, InputError
from flowevolve.config.sections import StoppingSettings
from flowevolve.core.budget import Budget
from flowevolve.core.event_kinds import FlowOpened, ItemTaken, RunResumed, RunStopping
from flowevolve.core.events import Event
from flowevolve.core.stop_reasons import TARGET_SCORE, StopReason
from flowevolve.runner.overview import read_overview

NamesSetting = Callable[[str], str]
"""Says, for a setting such as ``budget.minutes``, what whoever resumes a run gives to change it."""


def on_command_line(setting: str) -> str:
    return f"--set {setting}=…"


def in_script(setting: str) -> str:
    """As `on_command_line`, for a call of `flowevolve.optimize`."""
    section, _, name = setting.partition(".")
    if section == "budget":
        return f"budget=flowevolve.Budget({name}=…)"
    return f"flowevolve.Config({section}={{{name!r}: …}}), given to flowevolve.run"


def check_room(budget: Budget, directory: Path, names: NamesSetting) -> None:
    """Raises: InputError if a run that has ended has used up something that ``budget`` limits."""
    run = read_overview(directory)
    taken = {
        "rollouts": run.rollouts,
        "proposals": run.proposals,
        "tokens": run.tokens,
        "dollars": run.llm.dollars or 0.0,
        "seconds": run.wall_seconds,
    }
    limits = budget.by_name()
    for name, used in taken.items():
        limit = limits.get(name, inf)
        if used >= limit:
            raise InputError(
                f"{directory}: the run has ended and has taken {used:.12g} {name}, so with a limit of {limit:.12g} "
                f"{name} it can't go on. Raise the limit with {names(_setting(name, budget))}"
            )


def advice(ended: str, budget: Budget, names: NamesSetting) -> str:
    """Advice on how to go on with a run that ended for this reason."""
    if ended == TARGET_SCORE:
        return f". To go on with it, give it a higher target with {names('budget.target_score')}"
    if ended in Budget.model_fields:
        return f". To go on with it, raise that limit with {names(_setting(ended, budget))}"
    if ended in StoppingSettings.model_fields:
        return f". To go on with it, loosen the rule that ended it with {names(f'stopping.{ended}')}"
    return f". The algorithm has nothing left to do; {FROM_ITS_POOL}"


def _setting(limit: str, budget: Budget) -> str:
    """The setting that raises a limit. A time limit that was given in another unit is raised by ``minutes``, as times
    add up.
    """
    return f"budget.{limit if limit in budget.model_dump(exclude_none=True) else 'minutes'}"


class Resumption:
    """Notes whether a resumed run stopped before it began anything, as what stopped it had been reached before."""

    def __init__(self) -> None:
        self.reached_before = False
        self._untouched = False
        """Whether the run was resumed, and nothing has been begun since."""

    def event(self, event: Event) -> None:
        """An event sink."""
        match event.body:
            case RunResumed():
                self._untouched = True
            case RunStopping(reason=reason):
                self.reached_before = self._untouched and not StopReason(reason).leaves_work
            case ItemTaken():
                self._untouched = False
            case FlowOpened(phase=False):  # somebody may have raised the budget that had stopped it
                self._untouched = self.reached_before = False
