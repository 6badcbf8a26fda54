"""Whether a run that has ended can go on, and what has to be changed for that."""

from __future__ import annotations

from math import inf
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.config.run import StoppingSettings
from flowevolve.core.budget import Budget
from flowevolve.core.event_kinds import FlowOpened, ItemTaken, RunResumed, RunStopping
from flowevolve.core.events import Event
from flowevolve.core.stop_reasons import TARGET_SCORE, StopReason
from flowevolve.runner.overview import read_overview


def check_room(budget: Budget, directory: Path) -> None:
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
                f"{name} it can't go on. Raise the limit with --set budget.{_setting(name, budget)}=…"
            )


def advice(ended: str, budget: Budget) -> str:
    """Advice on how to go on with a run that ended for this reason."""
    if ended == TARGET_SCORE:
        return ". To go on with it, give it a higher target with --set budget.target_score=…"
    if ended in Budget.model_fields:
        return f". To go on with it, raise that limit with --set budget.{_setting(ended, budget)}=…"
    if ended in StoppingSettings.model_fields:
        return f". To go on with it, loosen the rule that ended it with --set stopping.{ended}=…"
    return ". The algorithm has nothing left to do; start a new run from its pool: flowevolve run CONFIG --from DIR"


def _setting(limit: str, budget: Budget) -> str:
    """The setting that raises a limit. A time limit that was given in another unit is raised by ``minutes``, as times
    add up.
    """
    return limit if limit in budget.model_dump(exclude_none=True) else "minutes"


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
