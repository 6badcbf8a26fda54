"""The benches of what the machinery costs, and of what it keeps when a run is killed."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.measured import GEPA
from bench.durability import section as durability
from bench.evaluations import section as evaluations
from bench.nodes import section as nodes
from bench.overhead import section as overhead
from bench.page import section as page
from bench.report.bench import NONE, Bench
from bench.scale import section as scale
from bench.sharing import section as sharing

MACHINERY: Sequence[Bench] = (
    Bench(
        "overhead",
        "What does the machinery cost?",
        overhead.answer,
        overhead.section,
        NONE,
        measures=("flowevolve/engine", "flowevolve/llm", "flowevolve/journal", "bench/overhead/calls.py"),
        goals=overhead.goals,
    ),
    Bench(
        "scale",
        "How far does one core process go?",
        scale.answer,
        scale.section,
        measures=(
            *GEPA,
            "flowevolve/llm",
            "flowevolve/journal",
            "flowevolve/core/pool.py",
            "bench/scale/measurements.py",
            "bench/scale/replicas.py",
        ),
        goals=scale.goals,
    ),
    Bench(
        "evaluations",
        "How much of what the cores can do is left for programs?",
        evaluations.answer,
        evaluations.section,
        measures=("flowevolve/sandbox", "flowevolve/engine", "bench/evaluations/rates.py"),
        quick="--seconds 8",
        goals=evaluations.goals,
    ),
    Bench(
        "nodes",
        "How many evaluations a second are left where programs run on the nodes of a cluster?",
        nodes.answer,
        nodes.section,
        NONE,
        measures=("flowevolve/sandbox", "bench/nodes/rates.py"),
        quick="--seconds 4 --rounds 1",
        environment=".venv-ray",
        goals=nodes.goals,
    ),
    Bench(
        "sharing",
        "Do several runs at one server get equal parts of it?",
        sharing.answer,
        sharing.section,
        measures=(*GEPA, "flowevolve/gateway", "bench/scale/replicas.py", "bench/sharing/runs.py"),
        goals=sharing.goals,
    ),
    Bench(
        "page",
        "What does a run lose that is watched in three browsers?",
        page.answer,
        page.section,
        measures=("flowevolve/page", "flowevolve/journal", "bench/page/cost.py"),
        quick="--rounds 1 --candidates 1000",
        goals=page.goals,
    ),
    Bench(
        "durability",
        "What does a killed run lose?",
        durability.answer,
        durability.section,
        measures=(
            "flowevolve/journal",
            "flowevolve/engine",
            "flowevolve/runner/resume.py",
            "flowevolve/runner/resume_checks.py",
            "bench/durability/kills.py",
            "bench/durability/server_log.py",
        ),
        full="--soak 30",
    ),
)
