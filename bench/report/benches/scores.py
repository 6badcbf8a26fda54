"""The benches of which scores are reached, and how soon, compared with gepa and our own lockstep."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.measured import GEPA
from bench.ablations import section as ablations
from bench.equal_calls import section as equal_calls
from bench.gepa_modes import section as gepa_modes
from bench.quality import beside, section as quality
from bench.report.baseline import quality_section
from bench.report.bench import Bench

SCORES: Sequence[Bench] = (
    Bench(
        "quality",
        "How soon does the default reach the held-out score that our own lockstep loop has after three hours?",
        quality.answer,
        quality_section,
        measures=(*GEPA, "bench/quality/runs.py", "bench/quality/methods.py"),
        goals=quality.goals,
    ),
    Bench(
        "quality_others",
        "Is the default sooner at that score than our own lockstep 4 and 16 wide, Combee and the other presets?",
        beside.others_answer,
        beside.others_section,
        command=beside.OTHERS_COMMAND,
        measures=(*GEPA, "flowevolve/algorithms/combee", "bench/quality/runs.py", "bench/quality/methods.py"),
        full="--worlds normal narrow adversarial harsh --seeds 4",
    ),
    Bench(
        "quality_without",
        "What does the default lose with one of its parts switched off?",
        beside.without_answer,
        beside.without_section,
        command=beside.WITHOUT_COMMAND,
        measures=(*GEPA, "bench/quality/runs.py", "bench/quality/methods.py"),
        full="--worlds normal narrow adversarial harsh --seeds 4",
    ),
    Bench(
        "equal_calls",
        "How does the drop-in for `gepa.optimize` compare with gepa's own loop at equal metric calls?",
        equal_calls.answer,
        equal_calls.section,
        command="equal_calls --seeds 10",
        measures=("flowevolve/compat/gepa", "flowevolve/engine", "policies", "stages", "bench/equal_calls/world.py"),
        quick="--seeds 1 --worlds plain",
        goals=equal_calls.goals,
    ),
    Bench(
        "gepa_modes",
        "How soon does the stream reach the score of our own lockstep loop?",
        gepa_modes.answer,
        gepa_modes.section,
        measures=GEPA,
    ),
    Bench(
        "ablations",
        "What does each way of treating stale work lead to?",
        ablations.answer,
        ablations.section,
        measures=(*GEPA, "bench/ablations/questions.py"),
    ),
)
