"""Geometric means of proposals over another method's, and the counts that they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean

from bench._lib.methods.runs import WARM_UP
from bench._lib.text import Content, table
from bench.throughput.goals import places
from bench.throughput.rows import BASE, Rows, methods, workloads

TEXT = """\
The means above are arithmetic, so one workload with a large ratio pulls them up; here that is {largest}. These are the
geometric means of the same ratios, with the smallest and the largest that a workload has:"""


def geometric_means(content: Content) -> str:
    """A table; nothing where synchronous gepa or the stream was not run."""
    found = places(content)
    if not all(_ratios(rows, "stream", [BASE]) for rows in found.values()):
        return ""
    first = _ratios(next(iter(found.values())), "stream", [BASE])
    pxn = {suffix: methods(rows, "gepa_pxn") for suffix, rows in found.items()}
    lines = [
        ("`stream` over synchronous gepa", *(geometric(rows, "stream", [BASE]) for rows in found.values())),
        *(
            (f"`{each}` over synchronous gepa", *(geometric(rows, each, [BASE]) for rows in found.values()))
            for each in ("plain", "careful", "flashevolve")
            if any(each in methods(rows) for rows in found.values())
        ),
    ]
    if any(pxn.values()):
        over_pxn = (geometric(rows, "stream", pxn[suffix]) for suffix, rows in found.items())
        lines.append(("`stream` over gepa's best PxN width", *over_pxn))
    header = ("proposals/min, geometric mean (smallest to largest)", *found)
    return f"{TEXT.format(largest=f'`{max(first, key=lambda name: first[name])}`')}\n\n{table(header, lines)}"


def geometric(rows: Rows, method: str, others: Sequence[str]) -> str:
    """Proposals/min over the best of the others', as ``mean (smallest to largest)`` over the workloads."""
    found = _ratios(rows, method, others).values()
    if not found:
        return "–"
    return f"{geometric_mean(found):.1f} ({min(found):.1f} to {max(found):.1f})"


def _ratios(rows: Rows, method: str, others: Sequence[str]) -> Mapping[str, float]:
    """By workload; empty where a method was not run or made no proposal somewhere."""
    rates = {
        name: (_rate(rows, name, method), max(_rate(rows, name, each) for each in others))
        for name in workloads(rows, method, *others)
        if others
    }
    return {name: ours / theirs for name, (ours, theirs) in rates.items()} if all(map(min, rates.values())) else {}


def _rate(rows: Rows, workload: str, method: str) -> float:
    return float(rows[workload, method]["proposals_per_min"])


def counts(content: Content) -> str:
    """How many proposals of synchronous gepa and of the stream the figures rest on."""
    said = []
    for method, name in ((BASE, "synchronous gepa"), ("stream", "`stream`")):
        found = list(_counts(content, method))
        if found:
            said.append(f"{min(found):.0f} to {max(found):.0f} of {name}")
    return f"Proposals in the time that was counted, as means of the repeats: {' and '.join(said)}." if said else ""


def _counts(content: Content, method: str) -> Iterator[float]:
    for row in content["rows"]:
        if row["method"] == method:
            yield row["proposals_per_min"] * (1 - WARM_UP) * content["settings"]["minutes"]
