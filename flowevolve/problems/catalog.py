"""The problems by name. ``[task] problem`` chooses one, and the section's other settings are its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flowevolve._util.registry import Registry
from flowevolve.problems.distances import MinMaxDistance
from flowevolve.problems.efficiency_family import EFFICIENCY_PROBLEMS
from flowevolve.problems.heilbronn import HeilbronnConvex, HeilbronnTriangle
from flowevolve.problems.hexagons import HexagonPacking
from flowevolve.problems.kissing import KissingNumber
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.packing import CirclePacking, RectanglePacking
from flowevolve.programs.problem import Problem


def sized(kind: type[Problem], make: Callable[[LimitsSetting], Problem]) -> Callable[..., Problem]:
    """The factory of a problem of a fixed size, whose only setting is ``limits``."""

    def factory(limits: LimitsSetting = "quick") -> Problem:
        return make(limits)

    factory.__doc__ = kind.__doc__
    return factory


SHIPPED_PROBLEMS: Mapping[str, Callable[..., Problem] | str] = {
    "circle_packing_26": sized(CirclePacking, lambda limits: CirclePacking(26, 2.63598, limits)),
    "circle_packing_32": sized(CirclePacking, lambda limits: CirclePacking(32, 2.93957, limits)),
    "circle_packing_rectangle_21": sized(RectanglePacking, lambda limits: RectanglePacking(21, 2.36583, limits)),
    "min_max_distance_2d": sized(MinMaxDistance, lambda limits: MinMaxDistance(16, 2, 1 / 12.88923, limits)),
    "min_max_distance_3d": sized(MinMaxDistance, lambda limits: MinMaxDistance(14, 3, 1 / 4.16579, limits)),
    "hexagon_packing_11": sized(HexagonPacking, lambda limits: HexagonPacking(11, 1 / 3.93009, limits)),
    "hexagon_packing_12": sized(HexagonPacking, lambda limits: HexagonPacking(12, 1 / 3.94191, limits)),
    "heilbronn_triangle_11": sized(HeilbronnTriangle, lambda limits: HeilbronnTriangle(11, 0.036529889, limits)),
    "heilbronn_convex_13": sized(HeilbronnConvex, lambda limits: HeilbronnConvex(13, 0.030936889, limits)),
    "heilbronn_convex_14": sized(HeilbronnConvex, lambda limits: HeilbronnConvex(14, 0.027835571, limits)),
    "kissing_number_11": sized(KissingNumber, lambda limits: KissingNumber(11, 593, limits)),
    "autocorrelation_1": "flowevolve.problems.autocorrelation:FirstAutocorrelation",
    "autocorrelation_2": "flowevolve.problems.autocorrelation:SecondAutocorrelation",
    "autocorrelation_3": "flowevolve.problems.autocorrelation:ThirdAutocorrelation",
    "erdos_minimum_overlap": "flowevolve.problems.overlap:MinimumOverlap",
    "uncertainty_inequality": "flowevolve.problems.uncertainty:UncertaintyInequality",
    "sums_and_differences": "flowevolve.problems.sumsets:SumsAndDifferences",
    "online_bin_packing": "flowevolve.problems.bin_packing:OnlineBinPacking",
    "tsp_construction": "flowevolve.problems.tsp:TspConstruction",
    "flow_shop": "flowevolve.problems.flow_shop:FlowShop",
    "transaction_scheduling": "flowevolve.problems.transactions:TransactionScheduling",
    "model_placement": "flowevolve.problems.placement:ModelPlacement",
    "cloudcast": "flowevolve.problems.cloudcast:Cloudcast",
    "expert_balance": "flowevolve.problems.expert_balance:ExpertBalance",
    "llm_sql": "flowevolve.problems.llm_sql:LlmSql",
    "spot_scheduling": "flowevolve.problems.spot:SpotScheduling",
    "spot_multi_region": "flowevolve.problems.spot_regions:SpotMultiRegion",
    "effibench": "flowevolve.problems.effibench:effibench",
    **EFFICIENCY_PROBLEMS,
}
"""The factory of each problem. Those given as a text are imported when they are needed."""
SIMULATED: Mapping[str, Callable[..., Problem] | str] = {"families": "flowevolve.problems.families:Families"}
"""Problems whose programs only a simulated model can write."""
EVALUATED: Mapping[str, Callable[..., Problem] | str] = {
    "command": "flowevolve.programs.evaluator:command_problem",
    "evaluator": "flowevolve.programs.callable:callable_problem",
    "folder": "flowevolve.problems.folders.catalog:folder_problem",
}
"""Problems that users bring, by the setting that specifies them. A command may have a folder, too."""
PROBLEMS: Registry[Problem] = Registry(
    "problem",
    "flowevolve.problems",
    {**SHIPPED_PROBLEMS, **SIMULATED, **EVALUATED},
    Problem,
    about=dict.fromkeys(
        EFFICIENCY_PROBLEMS, "A right program that is slow. Value: how fast it is, on tests that it has to pass."
    ),
)
