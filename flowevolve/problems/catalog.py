"""The problems by name. ``[task] problem`` chooses one, and the section's other settings are its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flowevolve._util.registry import Registry
from flowevolve.problems.autocorrelation import FirstAutocorrelation, SecondAutocorrelation
from flowevolve.problems.bin_packing import OnlineBinPacking
from flowevolve.problems.cloudcast import Cloudcast
from flowevolve.problems.distances import MinMaxDistance
from flowevolve.problems.effibench import effibench
from flowevolve.problems.efficiency_family import EFFICIENCY_PROBLEMS
from flowevolve.problems.expert_balance import ExpertBalance
from flowevolve.problems.flow_shop import FlowShop
from flowevolve.problems.folders import folder_problem
from flowevolve.problems.hexagons import HexagonPacking
from flowevolve.problems.packing import CirclePacking, RectanglePacking
from flowevolve.problems.placement import ModelPlacement
from flowevolve.problems.spot import SpotScheduling
from flowevolve.problems.transactions import TransactionScheduling
from flowevolve.problems.tsp import TspConstruction
from flowevolve.programs.callable import callable_problem
from flowevolve.programs.evaluator import command_problem
from flowevolve.programs.problem import Problem

SHIPPED_PROBLEMS: Mapping[str, Callable[..., Problem]] = {
    "circle_packing_26": lambda: CirclePacking(26, reference=2.63598),
    "circle_packing_32": lambda: CirclePacking(32, reference=2.93957),
    "circle_packing_rectangle_21": lambda: RectanglePacking(21, reference=2.36583),
    "min_max_distance_2d": lambda: MinMaxDistance(16, 2, reference=1 / 12.88923),
    "min_max_distance_3d": lambda: MinMaxDistance(14, 3, reference=1 / 4.16579),
    "hexagon_packing_11": lambda: HexagonPacking(11, reference=1 / 3.93009),
    "hexagon_packing_12": lambda: HexagonPacking(12, reference=1 / 3.94191),
    "autocorrelation_1": FirstAutocorrelation,
    "autocorrelation_2": SecondAutocorrelation,
    "online_bin_packing": OnlineBinPacking,
    "tsp_construction": TspConstruction,
    "flow_shop": FlowShop,
    "transaction_scheduling": TransactionScheduling,
    "model_placement": ModelPlacement,
    "cloudcast": Cloudcast,
    "expert_balance": ExpertBalance,
    "spot_scheduling": SpotScheduling,
    "effibench": effibench,
    **EFFICIENCY_PROBLEMS,
}
EVALUATED: Mapping[str, Callable[..., Problem]] = {
    "command": command_problem,
    "evaluator": callable_problem,
    "folder": folder_problem,
}
"""Problems that users bring, by the setting that tells them; a command may have a folder, too."""
PROBLEMS: Registry[Problem] = Registry("problem", "flowevolve.problems", {**SHIPPED_PROBLEMS, **EVALUATED}, Problem)
