"""flowevolve: LLM-driven evolution of prompts and programs, as a stream.

A name is imported when it is used for the first time, so that importing the package takes next to no time.
"""

from importlib.util import find_spec
from pkgutil import resolve_name
from typing import TYPE_CHECKING

__version__ = "0.2.0"

_NAMES = {
    "_util": "clock",
    "_util.clock": "in_thread",
    "_util.errors": (
        "BackendRefusedError BackendUnreachableError EngineError FlowevolveError FruitlessError InputError "
        "TaskFailedError"
    ),
    "_util.json_types": "JSON",
    "_util.secrets": "read_key",
    "_util.settings": "OpenSettings Settings",
    "_util.tasks": "Pulse run_all",
    "config.run": "Config load_config",
    "core.acts": "Approve Comment Inject Pause RaiseBudget Stop Unpause Veto",
    "core.algorithm": "Algorithm Archive Tuning Workers",
    "core.artifact": "Artifact",
    "core.budget": "Budget Cost",
    "core.context": "StageContext UpdateContext",
    "core.events": "Event",
    "core.graph": "CommittingStage Discard Emit Exhausted Graph NotYet Stage StageFunction",
    "core.item": "Gathered Item Stale Ticket",
    "core.model": "Message",
    "core.payload_kinds": "payload",
    "core.pool": "Add Annotate Candidate Move Note Update Vetoed",
    "core.task": "Call ChatModel Dataset Example Rollout Score Task",
    "engine.engine": "Engine",
    "runner.arguments": "LLM",
    "runner.forecast.forecast": "plan",
    "runner.optimize": "optimize optimize_async",
    "runner.replay": "replay",
    "runner.failed_runs": "result_of",
    "runner.result": "Result",
    "runner.resume": "resume",
    "runner.run": "open_run run",
}
"""The public names, by the module that each is imported from."""

if TYPE_CHECKING:
    from flowevolve._util import clock as clock
    from flowevolve._util.clock import in_thread as in_thread
    from flowevolve._util.errors import (
        BackendRefusedError as BackendRefusedError,
        BackendUnreachableError as BackendUnreachableError,
        EngineError as EngineError,
        FlowevolveError as FlowevolveError,
        FruitlessError as FruitlessError,
        InputError as InputError,
        TaskFailedError as TaskFailedError,
    )
    from flowevolve._util.json_types import JSON as JSON
    from flowevolve._util.secrets import read_key as read_key
    from flowevolve._util.settings import OpenSettings as OpenSettings, Settings as Settings
    from flowevolve._util.tasks import Pulse as Pulse, run_all as run_all
    from flowevolve.config.run import Config as Config, load_config as load_config
    from flowevolve.core.acts import (
        Approve as Approve,
        Comment as Comment,
        Inject as Inject,
        Pause as Pause,
        RaiseBudget as RaiseBudget,
        Stop as Stop,
        Unpause as Unpause,
        Veto as Veto,
    )
    from flowevolve.core.algorithm import (
        Algorithm as Algorithm,
        Archive as Archive,
        Tuning as Tuning,
        Workers as Workers,
    )
    from flowevolve.core.artifact import Artifact as Artifact
    from flowevolve.core.budget import Budget as Budget, Cost as Cost
    from flowevolve.core.context import StageContext as StageContext, UpdateContext as UpdateContext
    from flowevolve.core.events import Event as Event
    from flowevolve.core.graph import (
        CommittingStage as CommittingStage,
        Discard as Discard,
        Emit as Emit,
        Exhausted as Exhausted,
        Graph as Graph,
        NotYet as NotYet,
        Stage as Stage,
        StageFunction as StageFunction,
    )
    from flowevolve.core.item import Gathered as Gathered, Item as Item, Stale as Stale, Ticket as Ticket
    from flowevolve.core.model import Message as Message
    from flowevolve.core.payload_kinds import payload as payload
    from flowevolve.core.pool import (
        Add as Add,
        Annotate as Annotate,
        Candidate as Candidate,
        Move as Move,
        Note as Note,
        Update as Update,
        Vetoed as Vetoed,
    )
    from flowevolve.core.task import (
        Call as Call,
        ChatModel as ChatModel,
        Dataset as Dataset,
        Example as Example,
        Rollout as Rollout,
        Score as Score,
        Task as Task,
    )
    from flowevolve.engine.engine import Engine as Engine
    from flowevolve.runner.arguments import LLM as LLM
    from flowevolve.runner.failed_runs import result_of as result_of
    from flowevolve.runner.forecast.forecast import plan as plan
    from flowevolve.runner.optimize import optimize as optimize, optimize_async as optimize_async
    from flowevolve.runner.replay import replay as replay
    from flowevolve.runner.result import Result as Result
    from flowevolve.runner.resume import resume as resume
    from flowevolve.runner.run import open_run as open_run, run as run
else:
    __all__ = [name for names in _NAMES.values() for name in names.split()]

    def __getattr__(name: str) -> object:
        for module, names in _NAMES.items():
            if name in names.split():
                globals()[name] = found = resolve_name(f"flowevolve.{module}.{name}")
                return found
        is_module = not name.startswith("_") and find_spec(f"flowevolve.{name}") is not None
        hint = f"import flowevolve.{name}" if is_module else resolve_name("flowevolve._util.renamed.renamed")(name)
        raise AttributeError(f"module 'flowevolve' has no attribute {name!r}" + (f": {hint}" if hint else ""))

    def __dir__() -> list[str]:
        return sorted(["__version__", *__all__])
