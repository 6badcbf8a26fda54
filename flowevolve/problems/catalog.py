"""The problems by name. ``[task] problem`` chooses one, and the section's other settings are its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flowevolve._util.registry import Registry
from flowevolve.problems.distances import MinMaxDistance
from flowevolve.problems.efficiency_family import EFFICIENCY_PROBLEMS
from flowevolve.problems.hexagons import HexagonPacking
from flowevolve.problems.packing import CirclePacking, RectanglePacking
from flowevolve.programs.problem import Problem

SHIPPED_PROBLEMS: Mapping[str, Callable[..., Problem] | str] = {
    "circle_packing_26": lambda: CirclePacking(26, reference=2.63598),
    "circle_packing_32": lambda: CirclePacking(32, reference=2.93957),
    "circle_packing_rectangle_21": lambda: RectanglePacking(21, reference=2.36583),
    "min_max_distance_2d": lambda: MinMaxDistance(16, 2, reference=1 / 12.88923),
    "min_max_distance_3d": lambda: MinMaxDistance(14, 3, reference=1 / 4.16579),
    "hexagon_packing_11": lambda: HexagonPacking(11, reference=1 / 3.93009),
    "hexagon_packing_12": lambda: HexagonPacking(12, reference=1 / 3.94191),
    "autocorrelation_1": "flowevolve.problems.autocorrelation:FirstAutocorrelation",
    "autocorrelation_2": "flowevolve.problems.autocorrelation:SecondAutocorrelation",
    "online_bin_packing": "flowevolve.problems.bin_packing:OnlineBinPacking",
    "tsp_construction": "flowevolve.problems.tsp:TspConstruction",
    "flow_shop": "flowevolve.problems.flow_shop:FlowShop",
    "transaction_scheduling": "flowevolve.problems.transactions:TransactionScheduling",
    "model_placement": "flowevolve.problems.placement:ModelPlacement",
    "cloudcast": "flowevolve.problems.cloudcast:Cloudcast",
    "expert_balance": "flowevolve.problems.expert_balance:ExpertBalance",
    "spot_scheduling": "flowevolve.problems.spot:SpotScheduling",
    "effibench": "flowevolve.problems.effibench:effibench",
    **EFFICIENCY_PROBLEMS,
}
"""What makes each problem; those named by a text are imported when they are asked for."""
SIMULATED: Mapping[str, Callable[..., Problem] | str] = {"families": "flowevolve.problems.families:Families"}
"""Problems whose programs only a simulated model can write."""
EVALUATED: Mapping[str, Callable[..., Problem] | str] = {
    "command": "flowevolve.programs.evaluator:command_problem",
    "evaluator": "flowevolve.programs.callable:callable_problem",
    "folder": "flowevolve.problems.folders.catalog:folder_problem",
}
"""Problems that users bring, by the setting that tells them; a command may have a folder, too."""
PROBLEMS: Registry[Problem] = Registry(
    "problem", "flowevolve.problems", {**SHIPPED_PROBLEMS, **SIMULATED, **EVALUATED}, Problem
)
