"""flowevolve: LLM-driven evolution of prompts and programs, as a stream.

A name is imported when it is used for the first time, so that importing the package takes next to no time.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING

_NAMES = {
    "_util": "clock",
    "_util.errors": (
        "BackendRefusedError BackendUnreachableError EngineError FlowevolveError InputError TaskFailedError"
    ),
    "_util.secrets": "read_key",
    "_util.settings": "Settings",
    "config.run": "Config load_config",
    "core.algorithm": "Algorithm Archive Tuning Workers",
    "core.artifact": "Artifact",
    "core.budget": "Budget Cost",
    "core.context": "StageContext UpdateContext",
    "core.events": "Event",
    "core.graph": "CommittingStage Discard Emit Exhausted Graph NotYet Stage StageFunction",
    "core.item": "Item Ticket",
    "core.model": "Message",
    "core.payload_kinds": "payload",
    "core.pool": "Add Annotate Candidate Move Note Update",
    "core.task": "Call ChatModel Dataset Example Rollout Score Task",
    "engine.engine": "Engine",
    "runner.optimize": "LLM optimize",
    "runner.replay": "replay",
    "runner.result": "Result",
    "runner.resume": "resume",
    "runner.run": "open_run run",
}
"""The public names, by the module that each is imported from."""

if TYPE_CHECKING:
    from flowevolve._util import clock as clock
    from flowevolve._util.errors import BackendRefusedError as BackendRefusedError
    from flowevolve._util.errors import BackendUnreachableError as BackendUnreachableError
    from flowevolve._util.errors import EngineError as EngineError
    from flowevolve._util.errors import FlowevolveError as FlowevolveError
    from flowevolve._util.errors import InputError as InputError
    from flowevolve._util.errors import TaskFailedError as TaskFailedError
    from flowevolve._util.secrets import read_key as read_key
    from flowevolve._util.settings import Settings as Settings
    from flowevolve.config.run import Config as Config
    from flowevolve.config.run import load_config as load_config
    from flowevolve.core.algorithm import Algorithm as Algorithm
    from flowevolve.core.algorithm import Archive as Archive
    from flowevolve.core.algorithm import Tuning as Tuning
    from flowevolve.core.algorithm import Workers as Workers
    from flowevolve.core.artifact import Artifact as Artifact
    from flowevolve.core.budget import Budget as Budget
    from flowevolve.core.budget import Cost as Cost
    from flowevolve.core.context import StageContext as StageContext
    from flowevolve.core.context import UpdateContext as UpdateContext
    from flowevolve.core.events import Event as Event
    from flowevolve.core.graph import CommittingStage as CommittingStage
    from flowevolve.core.graph import Discard as Discard
    from flowevolve.core.graph import Emit as Emit
    from flowevolve.core.graph import Exhausted as Exhausted
    from flowevolve.core.graph import Graph as Graph
    from flowevolve.core.graph import NotYet as NotYet
    from flowevolve.core.graph import Stage as Stage
    from flowevolve.core.graph import StageFunction as StageFunction
    from flowevolve.core.item import Item as Item
    from flowevolve.core.item import Ticket as Ticket
    from flowevolve.core.model import Message as Message
    from flowevolve.core.payload_kinds import payload as payload
    from flowevolve.core.pool import Add as Add
    from flowevolve.core.pool import Annotate as Annotate
    from flowevolve.core.pool import Candidate as Candidate
    from flowevolve.core.pool import Move as Move
    from flowevolve.core.pool import Note as Note
    from flowevolve.core.pool import Update as Update
    from flowevolve.core.task import Call as Call
    from flowevolve.core.task import ChatModel as ChatModel
    from flowevolve.core.task import Dataset as Dataset
    from flowevolve.core.task import Example as Example
    from flowevolve.core.task import Rollout as Rollout
    from flowevolve.core.task import Score as Score
    from flowevolve.core.task import Task as Task
    from flowevolve.engine.engine import Engine as Engine
    from flowevolve.runner.optimize import LLM as LLM
    from flowevolve.runner.optimize import optimize as optimize
    from flowevolve.runner.replay import replay as replay
    from flowevolve.runner.result import Result as Result
    from flowevolve.runner.resume import resume as resume
    from flowevolve.runner.run import open_run as open_run
    from flowevolve.runner.run import run as run
else:
    __all__ = [name for names in _NAMES.values() for name in names.split()]

    def __getattr__(name: str) -> object:
        for module, names in _NAMES.items():
            if name in names.split():
                globals()[name] = found = resolve_name(f"flowevolve.{module}.{name}")
                return found
        raise AttributeError(f"module 'flowevolve' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
