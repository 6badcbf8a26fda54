"""How many goals are missed of each kind: most of those on speed and score are beside other projects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench._lib.text import Content
from bench.report.bench import Bench, count_goals

KINDS: Mapping[str, Sequence[str]] = {
    "on speed and score beside gepa or a full server": ("throughput", "throughput_vllm_cpu", "equal_calls"),
    "beside our own loop (*lockstep*)": ("quality", "meta_harness"),
}
"""The benches whose goals are on how fast evolution is and on what scores it reaches, by what they compare with."""
OTHERS = "on predictions and machinery"


def by_kind(found: Iterable[tuple[Bench, Content]]) -> str:
    """How many goals of each kind are missed; leaves out kinds without goals."""
    kinds: dict[str, list[tuple[Bench, Content]]] = {kind: [] for kind in (*KINDS, OTHERS)}
    for bench, content in found:
        kind = next((kind for kind, names in KINDS.items() if bench.name in names), OTHERS)
        kinds[kind].append((bench, content))
    counts = {kind: count_goals(each) for kind, each in kinds.items()}
    told = [f"{_of(missed, goals)} {kind}" for kind, (missed, goals) in counts.items() if goals]
    return " and ".join(filter(None, [", ".join(told[:-1]), *told[-1:]]))


def _of(missed: int, goals: int) -> str:
    return f"all {goals}" if missed == goals > 1 else f"{missed} of {goals}"
