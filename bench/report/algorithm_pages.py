"""What the pages on algorithms say about measurements: the questions and answers of the benches, as on the benches' own
pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench._lib.paths import ROOT
from bench.report.age import mark_of
from bench.report.bench import Bench
from bench.report.benches import BENCHES
from bench.report.page import sentence
from bench.report.results import read

FOLDER = ROOT / "docs" / "algorithms"
MEASURED: Mapping[str, Sequence[str]] = {
    "ace": ("ace", "algorithms"),
    "code-evolve": ("programs", "families", "families_long", "algorithms"),
    "combee": ("quality", "quality_others", "algorithms"),
    "context-evolve": ("context_tokens", "agent_ablations", "families", "algorithms"),
    "cse": ("agent_ablations", "families", "task_sequence", "algorithms"),
    "gepa": ("throughput", "throughput_vllm_cpu", "quality", "equal_calls", "ablations"),
    "levi": ("programs", "families", "levi_proxy", "algorithms"),
    "meta-harness": ("meta_harness", "algorithms"),
}
"""For each page, the benches that measure its algorithm."""


def measured(names: Sequence[str]) -> str:
    """A line for each of these benches that has a result."""
    benches = {bench.name: bench for bench in BENCHES}
    return "\n".join(line for name in names if (line := _line(benches[name])))


def _line(bench: Bench) -> str:
    content = read(bench.name)
    if content is None:
        return ""
    age = "" if mark_of(bench, content) is None else " (The result is older than the code.)"
    return f"- [{bench.question}](../benchmarks/{bench.name}.md) {sentence(bench.answer(content))}{age}"


BLOCKS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    FOLDER / f"{page}.md": {"measured": partial(measured, names)} for page, names in MEASURED.items()
}
