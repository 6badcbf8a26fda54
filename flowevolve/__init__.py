"""flowevolve: LLM-driven evolution of prompts and programs, as a stream."""

from flowevolve.algorithm import Algorithm as Algorithm
from flowevolve.algorithm import Archive as Archive
from flowevolve.api import LLM as LLM
from flowevolve.api import optimize as optimize
from flowevolve.artifact import Artifact as Artifact
from flowevolve.budget import Budget as Budget
from flowevolve.budget import Cost as Cost
from flowevolve.config import Config as Config
from flowevolve.config import load_config as load_config
from flowevolve.engine import Engine as Engine
from flowevolve.errors import BackendRefusedError as BackendRefusedError
from flowevolve.errors import BackendUnreachableError as BackendUnreachableError
from flowevolve.errors import EngineError as EngineError
from flowevolve.errors import FlowevolveError as FlowevolveError
from flowevolve.errors import InputError as InputError
from flowevolve.errors import TaskFailedError as TaskFailedError
from flowevolve.events import Event as Event
from flowevolve.pool import Candidate as Candidate
from flowevolve.replay import replay as replay
from flowevolve.result import Result as Result
from flowevolve.run import run as run
from flowevolve.stage import Discard as Discard
from flowevolve.stage import Emit as Emit
from flowevolve.stage import Graph as Graph
from flowevolve.stage import Stage as Stage
