"""Which benches have a page, in which order, and what each of them asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench._lib.text import Content
from bench.ablations import section as ablations
from bench.ace import section as ace
from bench.agent_ablations import section as agent_ablations
from bench.algorithms import section as algorithms
from bench.context_tokens import section as context_tokens
from bench.durability import section as durability
from bench.equal_calls import section as equal_calls
from bench.evaluations import section as evaluations
from bench.families import section as families
from bench.gepa_adapter import section as gepa_adapter
from bench.gepa_modes import section as gepa_modes
from bench.gpu import section as gpu
from bench.levi_proxy import section as levi_proxy
from bench.meta_harness import section as meta_harness
from bench.overhead import section as overhead
from bench.page import section as page
from bench.plan import section as plan
from bench.programs import section as programs
from bench.quality import beside, section as quality
from bench.scale import section as scale
from bench.task_sequence import section as task_sequence
from bench.throughput import section as throughput

SIMULATED, SMALL, NONE = "simulated", "SmolLM2-135M", "none"


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench: its result is ``NAME.json``. ``section`` makes Markdown of that, from a ``#`` heading on; ``answer`` is
    one figure with its spread, said so that it follows the question. ``model`` is which one answered, and ``command``
    what to call after ``python -m bench.``, where that is not the name.
    """

    name: str
    question: str
    answer: Callable[[Content], str]
    section: Callable[[Content], str]
    model: str = SIMULATED
    command: str | None = None


BENCHES: Sequence[Bench] = (
    Bench(
        "throughput",
        "How soon is the stream at synchronous gepa's last score, and how many proposals does it make?",
        throughput.answer,
        throughput.section,
    ),
    Bench(
        "throughput_vllm_cpu",
        "How is that on a real vLLM with two CPU cores?",
        throughput.answer,
        throughput.section,
        SMALL,
        "throughput --server vllm-cpu",
    ),
    Bench(
        "gpu", "How many proposals a minute does it make on a real GPU?", gpu.answer, gpu.section, "one of your choice"
    ),
    Bench(
        "quality",
        "How soon does the default reach the held-out score that synchronous GEPA has after three hours?",
        quality.answer,
        quality.section,
    ),
    Bench(
        "quality_others",
        "Is the default sooner at that score than gepa's parallel proposals, Combee and the other presets?",
        beside.others_answer,
        beside.others_section,
        command=beside.OTHERS_COMMAND,
    ),
    Bench(
        "quality_without",
        "What does the default lose with one of its parts switched off?",
        beside.without_answer,
        beside.without_section,
        command=beside.WITHOUT_COMMAND,
    ),
    Bench(
        "equal_calls",
        "How does the drop-in for `gepa.optimize` compare with gepa's own loop at equal metric calls?",
        equal_calls.answer,
        equal_calls.section,
    ),
    Bench(
        "gepa_modes",
        "How soon does the stream reach the score of our own lockstep loop?",
        gepa_modes.answer,
        gepa_modes.section,
    ),
    Bench(
        "gepa_adapter",
        "How many proposals a minute does the drop-in for `gepa.optimize` make over one adapter?",
        gepa_adapter.answer,
        gepa_adapter.section,
    ),
    Bench("ablations", "What does each way of treating stale work lead to?", ablations.answer, ablations.section),
    Bench("ace", "How soon does ACE's stream reach the score of its lockstep form?", ace.answer, ace.section),
    Bench(
        "meta_harness",
        "How many harnesses a minute does Meta-Harness propose as a stream, compared with lockstep?",
        meta_harness.answer,
        meta_harness.section,
    ),
    Bench(
        "algorithms",
        "How much faster than lockstep do the algorithms spend the same tokens as streams?",
        algorithms.answer,
        algorithms.section,
    ),
    Bench(
        "algorithms_vllm_cpu",
        "How much faster than lockstep are streams on a real vLLM with two CPU cores?",
        algorithms.answer,
        algorithms.section,
        SMALL,
        "algorithms --server vllm-cpu",
    ),
    Bench(
        "programs",
        "Are LEVI and CodeEvolve better than plain searches at equal evaluations?",
        programs.answer,
        programs.section,
    ),
    Bench(
        "families",
        "How far are the algorithms ahead of (1+λ) where another family of programs has to be found?",
        families.answer,
        families.section,
    ),
    Bench(
        "families_long",
        "How far is CodeEvolve ahead of (1+λ) on this landscape with twice the evaluations?",
        families.answer,
        families.long_section,
        command=families.LONG,
    ),
    Bench(
        "agent_ablations",
        "What are the parts of CSE and the agents of ContextEvolve worth?",
        agent_ablations.answer,
        agent_ablations.section,
    ),
    Bench(
        "task_sequence",
        "What is CSE's global memory worth over a sequence of tasks?",
        task_sequence.answer,
        task_sequence.section,
    ),
    Bench(
        "context_tokens",
        "How many tokens does a step of ContextEvolve take, compared with raw histories?",
        context_tokens.answer,
        context_tokens.section,
    ),
    Bench(
        "levi_proxy",
        "How well do a few problems that LEVI chooses rank prompts?",
        levi_proxy.answer,
        levi_proxy.section,
        NONE,
    ),
    Bench(
        "evaluations",
        "How much of what the cores can do is left for programs?",
        evaluations.answer,
        evaluations.section,
    ),
    Bench("overhead", "What does the machinery cost?", overhead.answer, overhead.section, NONE),
    Bench("plan", "How near does a plan come to what a run then takes?", plan.answer, plan.section),
    Bench("scale", "How far does one core process go?", scale.answer, scale.section),
    Bench("page", "What does a run lose that is watched in three browsers?", page.answer, page.section),
    Bench("durability", "What does a killed run lose?", durability.answer, durability.section),
)
"""In the order of the page."""
