"""The problems that ``[task]`` can name: what ships, what users bring, and what plug-ins add.

What ships is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve._util.registry import Registry
from flowevolve.programs.problem import Problem

SHIPPED_PROBLEMS: Mapping[str, str] = {
    "circle_packing_26": "flowevolve.problems.packing:circle_packing_26",
    "circle_packing_32": "flowevolve.problems.packing:circle_packing_32",
    "circle_packing_rectangle_21": "flowevolve.problems.packing:circle_packing_rectangle_21",
    "min_max_distance_2d": "flowevolve.problems.distances:min_max_distance_2d",
    "min_max_distance_3d": "flowevolve.problems.distances:min_max_distance_3d",
    "hexagon_packing_11": "flowevolve.problems.hexagons:hexagon_packing_11",
    "hexagon_packing_12": "flowevolve.problems.hexagons:hexagon_packing_12",
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
    "efficiency_range_sums": "flowevolve.problems.efficiency_family:efficiency_range_sums",
    "efficiency_range_minimum": "flowevolve.problems.efficiency_family:efficiency_range_minimum",
    "efficiency_counts_above": "flowevolve.problems.efficiency_family:efficiency_counts_above",
    "efficiency_distinct_windows": "flowevolve.problems.efficiency_family:efficiency_distinct_windows",
    "efficiency_window_maximum": "flowevolve.problems.efficiency_family:efficiency_window_maximum",
    "efficiency_longest_run": "flowevolve.problems.efficiency_family:efficiency_longest_run",
    "efficiency_merged_spans": "flowevolve.problems.efficiency_family:efficiency_merged_spans",
    "efficiency_groups": "flowevolve.problems.efficiency_family:efficiency_groups",
    "efficiency_distances": "flowevolve.problems.efficiency_family:efficiency_distances",
}
EVALUATED: Mapping[str, str] = {
    "command": "flowevolve.programs.evaluator:command_problem",
    "evaluator": "flowevolve.programs.callable:callable_problem",
    "folder": "flowevolve.problems.folders:folder_problem",
}
"""Problems that users bring, by the setting that tells them; a command may have a folder, too."""
PROBLEMS: Registry[Problem] = Registry("problem", "flowevolve.problems", {**SHIPPED_PROBLEMS, **EVALUATED}, Problem)
