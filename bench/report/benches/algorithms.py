"""The benches of algorithms other than GEPA."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.measured import PROGRAMS, RUNS
from bench.ace import section as ace
from bench.agent_ablations import section as agent_ablations
from bench.algorithms import section as algorithms
from bench.context_tokens import section as context_tokens
from bench.families import section as families
from bench.levi_proxy import section as levi_proxy
from bench.meta_harness import section as meta_harness
from bench.meta_harness.runs import READS
from bench.program_peers import section as program_peers
from bench.programs import section as programs
from bench.report.bench import SMALL, Bench
from bench.task_sequence import section as task_sequence

ALGORITHMS: Sequence[Bench] = (
    Bench(
        "algorithms",
        "How much faster than lockstep do the algorithms spend the same tokens as streams?",
        algorithms.answer,
        algorithms.section,
        measures=(*RUNS, "flowevolve/algorithms"),
    ),
    Bench(
        "algorithms_vllm_cpu",
        "How much faster than lockstep are streams on a real vLLM on two cores?",
        algorithms.answer,
        algorithms.section,
        SMALL,
        "algorithms --server vllm-cpu --minutes 3",
        measures=(*RUNS, "flowevolve/algorithms"),
        quick="--minutes 1",
    ),
    Bench(
        "ace",
        "How soon does ACE's stream reach the score of its lockstep form?",
        ace.answer,
        ace.section,
        measures=(*RUNS, "flowevolve/algorithms/ace"),
    ),
    Bench(
        "meta_harness",
        "How many harnesses a minute does Meta-Harness propose as a stream, compared with lockstep?",
        meta_harness.answer,
        meta_harness.section,
        command="meta_harness --minutes 10 --width 24 --workers 12",
        measures=(*RUNS, "flowevolve/algorithms/meta_harness"),
        goals=meta_harness.goals,
        reads=READS,
    ),
    Bench(
        "programs",
        "Are LEVI and CodeEvolve better than plain searches at equal evaluations?",
        programs.answer,
        programs.section,
        measures=PROGRAMS,
        full="--ablations",
    ),
    Bench(
        "program_peers",
        "How does it compare with OpenEvolve, ShinkaEvolve, LEVI and SkyDiscover on programs?",
        program_peers.answer,
        program_peers.section,
        measures=(
            "flowevolve/algorithms/baselines",
            "flowevolve/engine",
            "flowevolve/sandbox",
            "flowevolve/sim/worlds/code",
            "bench/program_peers",
            ":(exclude)bench/program_peers/section.py",
        ),
        quick="--quick --not-alone",
    ),
    Bench(
        "families",
        "How far are the algorithms ahead of (1+λ) where another family of programs has to be found?",
        families.answer,
        families.section,
        measures=PROGRAMS,
        quick="--seeds 2 --evaluations 20",
    ),
    Bench(
        "families_long",
        "How far is CodeEvolve ahead of (1+λ) on this landscape with twice the evaluations?",
        families.answer,
        families.long_section,
        command=families.LONG,
        measures=PROGRAMS,
        quick="--seeds 1",
    ),
    Bench(
        "agent_ablations",
        "What are the parts of CSE and the agents of ContextEvolve worth?",
        agent_ablations.answer,
        agent_ablations.section,
        measures=PROGRAMS,
    ),
    Bench(
        "task_sequence",
        "What is CSE's global memory worth over a sequence of tasks?",
        task_sequence.answer,
        task_sequence.section,
        measures=(*PROGRAMS, "flowevolve/experience"),
        full="--seeds 5",
    ),
    Bench(
        "context_tokens",
        "How many tokens does a step of ContextEvolve take, compared with raw histories?",
        context_tokens.answer,
        context_tokens.section,
        measures=(*RUNS, "flowevolve/algorithms/context_evolve"),
    ),
    Bench(
        "levi_proxy",
        "How well do a few problems that LEVI chooses rank prompts?",
        levi_proxy.answer,
        levi_proxy.section,
        "none; scores are made up",
        measures=("flowevolve/algorithms/levi/proxy.py", "bench/levi_proxy/methods.py", "bench/levi_proxy/rankings.py"),
        goals=levi_proxy.goals,
    ),
)
