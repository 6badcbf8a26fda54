"""The benches of how fast evolution is, compared with gepa."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.measured import GPU, METHODS
from bench.gepa_adapter import section as gepa_adapter
from bench.gpu import section as gpu
from bench.gpu.deviations import goals as gpu_goals
from bench.report.bench import SMALL, Bench
from bench.throughput import goals as throughput_goals, section as throughput

SPEED: Sequence[Bench] = (
    Bench(
        "throughput",
        "How soon has the stream synchronous gepa's last score?",
        throughput.answer,
        throughput.section,
        measures=METHODS,
        goals=throughput_goals.met,
        full="--methods gepa_sync gepa_pxn_2x2 gepa_pxn_4x4 gepa_pxn_8x8 gepa_pxn_1x8 gepa_pxn_8x1 gepa_pxn_2x8 "
        "gepa_pxn_8x2 dspy_gepa_4x4 agentdescent agentdescent_merging turbogepa stream stream_time plain flashevolve "
        "lockstep stream_real stream_time_real lockstep_real --repeats 5 --virtual-repeats 5 --base-repeats 5",
    ),
    Bench(
        "throughput_vllm_cpu",
        "How is that on a real vLLM with two CPU cores?",
        throughput.answer,
        throughput.section,
        SMALL,
        "throughput --server vllm-cpu",
        measures=METHODS,
        goals=throughput_goals.met,
        full="--concurrency 32 --methods gepa_sync stream plain --workloads ifbench aime --minutes 9.6 --repeats 1",
    ),
    Bench(
        "gpu",
        "How many proposals a minute does it make on a real GPU?",
        gpu.answer,
        gpu.section,
        "random weights, simulated words",
        "gpu --workloads hover --minutes 2.5 --concurrency 64",
        measures=GPU,
        quick=None,
        goals=gpu_goals,
    ),
    Bench(
        "gpu_hotpotqa",
        "How many proposals a minute on a real GPU, where answers are short?",
        gpu.answer,
        gpu.section,
        "random weights, simulated words",
        "gpu --workloads hotpotqa --minutes 1 --repeats 3 --concurrency 64",
        measures=GPU,
        quick=None,
        goals=gpu_goals,
    ),
    Bench(
        "gpu_aime",
        "How many proposals in the first minute on a real GPU, where an example takes one call?",
        gpu.answer,
        gpu.section,
        "random weights, simulated words",
        "gpu --workloads aime --minutes 1 --concurrency 64",
        measures=GPU,
        quick=None,
        goals=gpu_goals,
    ),
    Bench(
        "gepa_adapter",
        "How many proposals a minute does the drop-in for `gepa.optimize` make?",
        gepa_adapter.answer,
        gepa_adapter.section,
        command="gepa_adapter --seconds 25 --repeats 3",
        measures=("flowevolve/compat/gepa", "flowevolve/engine", "policies", "stages", "bench/gepa_adapter/modes.py"),
        quick="--seconds 10 --repeats 1",
    ),
)
