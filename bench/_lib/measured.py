"""The folders and files that decide the figures of several benches, as git pathspecs."""

from __future__ import annotations

RUNS = (
    "flowevolve/engine",
    ":(exclude)flowevolve/engine/recovery",
    "flowevolve/llm/scheduling",
    "policies",
    "stages",
    "flowevolve/prompts",
    "flowevolve/sim",
)
"""The paths that decide the figures of any run on the simulator."""
GEPA = (*RUNS, "flowevolve/algorithms/gepa", "flowevolve/config/presets.py")
_RUNNING = (
    "bench/peers",
    "bench/_lib/methods",
    ":(exclude)bench/_lib/methods/ratios.py",  # compares what was measured
)
METHODS = (*GEPA, "flowevolve/algorithms/combee", *_RUNNING)
OTHERS = ("flowevolve/prompts", "flowevolve/sim", *_RUNNING)
"""The paths that decide the figures of other projects' methods: not those of our engine and algorithms."""
GPU = ("flowevolve/sim/calibration", "bench/gpu/service.py", *METHODS)
PROGRAMS = (
    *RUNS,
    *(f"flowevolve/algorithms/{name}" for name in ("baselines", "code_evolve", "context_evolve", "cse", "levi")),
    "flowevolve/archives",
    "flowevolve/problems",
)
CONFIRM = ("bench/confirm", ":(exclude)bench/confirm/section.py")
