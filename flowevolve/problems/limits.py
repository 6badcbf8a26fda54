"""Limits of programs: time, memory, tolerance and packages, with the values of the papers as a preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from pydantic import Field

from flowevolve._util.errors import InputError
from flowevolve._util.settings import Settings
from flowevolve.core.sandbox_settings import MOST_MB

Preset = Literal["quick", "paper"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each call of a program, and how exact its result must be."""

    timeout: float = 5.0
    """Seconds."""
    memory_mb: int | None = None
    """None: that of the sandbox."""
    tolerance: float = 1e-9
    """By how much a result may violate a geometric constraint, for example how deep circles may overlap."""
    packages: tuple[str, ...] = ("numpy",)
    """The packages that a program may import besides the standard library if they are installed, by import name."""


class LimitSettings(Settings):
    """The table ``[task.limits]``: a preset, and what differs from it."""

    preset: Preset = "quick"
    timeout: float | None = Field(default=None, gt=0, le=86400)
    memory_mb: int | None = Field(default=None, gt=0, le=MOST_MB)
    tolerance: float | None = Field(default=None, ge=0, le=1e-3)
    packages: tuple[str, ...] | None = None


LimitsSetting = LimitSettings | Preset
"""The setting ``limits`` of a problem: the name of a preset, or a table."""

QUICK = Limits()
"""The preset for tests and trials. It holds for all problems except ``flow_shop``, whose own search takes longer."""
SLOWER: Mapping[str, Limits] = {"flow_shop": Limits(timeout=10.0)}

CODE_EVOLVE_PACKAGES = (
    *("numpy", "scipy", "sympy", "pandas", "networkx", "jax", "torch", "numba", "sklearn"),
    *("deap", "platypus", "shapely", "rtree", "constraint", "ortools", "joblib", "cvxpy", "optax"),
)
"""The core packages that CodeEvolve's prompts name (its appendix D), followed by those that the prompts call useful for
optimization, and by optax, which its published programs for the autocorrelation inequalities import.
"""
ADRS_PACKAGES = ("numpy", "pandas", "networkx", "torch")
"""The packages that the published programs for ADRS import."""


def _code_evolve(timeout: float, memory_gb: int) -> Limits:
    """Limits of CodeEvolve's table 8. The tolerance is the one of its evaluators, 1e-6."""
    return Limits(timeout, memory_gb * 1024, 1e-6, CODE_EVOLVE_PACKAGES)


_LEVI = Limits(60.0, None, 1e-6, ADRS_PACKAGES)
"""The time limit of LEVI's table 5, which names no memory limit."""
_ALPHA_EVOLVE = _code_evolve(360.0, 5)
"""AlphaEvolve states no limits for the problems that are in no other paper; these are CodeEvolve's longest."""

PAPER: Mapping[str, Limits] = {
    "circle_packing_26": _code_evolve(60.0, 1),
    "circle_packing_32": _code_evolve(60.0, 1),
    "circle_packing_rectangle_21": _code_evolve(60.0, 1),
    "hexagon_packing_11": _code_evolve(180.0, 5),
    "hexagon_packing_12": _code_evolve(180.0, 5),
    "min_max_distance_2d": _code_evolve(180.0, 5),
    "min_max_distance_3d": _code_evolve(360.0, 5),
    "autocorrelation_1": _code_evolve(360.0, 5),
    "autocorrelation_2": _code_evolve(60.0, 1),
    "autocorrelation_3": _ALPHA_EVOLVE,
    "uncertainty_inequality": _ALPHA_EVOLVE,
    "erdos_minimum_overlap": _ALPHA_EVOLVE,
    "sums_and_differences": _ALPHA_EVOLVE,
    "kissing_number_11": _ALPHA_EVOLVE,
    "heilbronn_triangle_11": _ALPHA_EVOLVE,
    "heilbronn_convex_13": _ALPHA_EVOLVE,
    "heilbronn_convex_14": _ALPHA_EVOLVE,
    "online_bin_packing": _code_evolve(30.0, 1),
    "tsp_construction": _code_evolve(60.0, 1),
    "flow_shop": _code_evolve(120.0, 1),
    "transaction_scheduling": Limits(300.0, None, 1e-6, ADRS_PACKAGES),  # as in the script of LEVI's run
    "model_placement": _LEVI,
    "cloudcast": _LEVI,
    "expert_balance": _LEVI,
    "spot_scheduling": _LEVI,
    "spot_multi_region": _LEVI,
    "llm_sql": _LEVI,
}
"""The preset ``paper``, by the names of problems."""


def limits_for(name: str, setting: LimitsSetting) -> Limits:
    """The limits of the problem with this name.

    Packages of a preset that are not installed are left out; packages that the setting itself names must all be
    installed.

    Raises:
        InputError: if the preset ``paper`` is asked for and has no limits for the problem, or if a package that the
            setting names is not installed.
    """
    table = LimitSettings(preset=setting) if isinstance(setting, str) else setting
    if table.preset == "paper" and name not in PAPER:
        raise InputError(f"task.limits: no paper states limits for problem {name!r}; set timeout and memory_mb instead")
    base = PAPER[name] if table.preset == "paper" else SLOWER.get(name, QUICK)
    return Limits(
        timeout=base.timeout if table.timeout is None else table.timeout,
        memory_mb=base.memory_mb if table.memory_mb is None else table.memory_mb,
        tolerance=base.tolerance if table.tolerance is None else table.tolerance,
        packages=installed(base.packages) if table.packages is None else _demanded(table.packages),
    )


def installed(packages: Sequence[str]) -> tuple[str, ...]:
    """The packages among these that programs can import here."""
    return tuple(package for package in packages if find_spec(package) is not None)


def _demanded(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Raises:
    InputError: naming the packages that are not installed.
    """
    wrong = [package for package in packages if not package.isidentifier()]
    if wrong:
        raise InputError(
            f"task.limits.packages: {wrong[0]!r} is not a name to import; scikit-learn, for example, is 'sklearn'"
        )
    missing = [package for package in packages if package not in installed(packages)]
    if missing:
        raise InputError(
            f"task.limits.packages: {', '.join(missing)} can't be imported here; install what is missing with pip, "
            "or leave it out"
        )
    return packages


def in_words(packages: Sequence[str]) -> str:
    """What programs may import, for a problem's statement and for messages."""
    return (
        ", ".join(["the standard library", *packages[:-1]]) + f" and {packages[-1]}"
        if packages
        else ("the standard library")
    )
