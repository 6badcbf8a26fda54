"""The page on how the defaults compare with gepa and with other projects, from the results of several benches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench._lib.text import Content, wrapped
from bench._lib.time_to_score import Rows, workloads
from bench.equal_calls import section as of_equal_calls
from bench.equal_calls.timing import CONCURRENCY
from bench.gepa_adapter.section import by_default
from bench.gpu import section as gpu
from bench.prediction.section import rates
from bench.report import aiming, gains, merging, overview
from bench.report.age import any_old, mark_of, the_defaults
from bench.report.benches import BENCHES
from bench.report.first_page import ON_GPUS
from bench.throughput.goals import places
from bench.throughput.notes import COMFORTABLE
from bench.throughput.rows import methods

NAME = "beside_gepa"
NEEDS = (
    "throughput",
    "quality_without",
    "quality_others",
    "equal_calls",
    "gepa_adapter",
    "prediction",
    "throughput_vllm_cpu",
    *ON_GPUS,
)
"""The results that the page is made of."""
PAGE = """\
# Beside gepa

{lead}

{words}

{methods}

{set_up}

{told}

[All benchmarks](../benchmarks.md).
"""
SIMULATED = """\
Servers and all words are [simulated]({docs}concepts/simulator.md), settings were chosen in such worlds, and each
*workload* is the same made-up task, with a data set's calls and prompt lengths, not its rows."""
DROP_IN = """\
[At {calls} metric calls](equal_calls.md) the drop-in for `gepa.optimize` (`adapter_concurrency={concurrency}`) shows
{score}{age}. With 1, the default, it was not run; it makes [{share} times gepa's proposals](gepa_adapter.md)."""
MERGING = f"The table's world merges up to {COMFORTABLE} edits without loss."
BATCHES = ", and more a minute than these in {batches} on real servers"


def page(contents: Mapping[str, Content]) -> str:
    """The page, made of the results that `NEEDS` names."""
    timed = contents["throughput"]
    told = [wrapped(f"- **{about}.** {said}", "  ") for about, said in _to_know(contents).items() if said]
    return PAGE.format(
        lead=wrapped(overview.lead(timed)),
        words=wrapped(overview.words(timed)),
        methods=overview.methods_beside_gepa(timed, "../how-to/presets.md#how-many-flows"),
        set_up=wrapped(overview.set_up(timed, "")),
        told="\n".join(told),
    )


def _to_know(contents: Mapping[str, Content]) -> Mapping[str, str]:
    """What the table does not show."""
    timed = contents["throughput"]
    edits = merging.merging(contents["quality_without"], contents["quality_others"], "")
    on_gpus = {f"{name}.md": contents[name] for name in ON_GPUS}
    return {
        "Simulated": SIMULATED.format(docs="../"),
        "Parallel proposals": gains.parallel(timed, BATCHES.format(batches=_batches(contents))),
        "Others that merge": gains.merging_peer(timed, aiming.beside_peer(timed)),
        "Scores at equal cost": f"{gains.at_equal_tokens(timed)} {_drop_in(contents)}",
        "Where it comes from": f"{MERGING} {edits}".strip(),
        "On a real GPU": " ".join(gpu.beside(on_gpus, the_defaults(ON_GPUS))),
    }


def _drop_in(contents: Mapping[str, Content]) -> str:
    content = contents["equal_calls"]
    return DROP_IN.format(
        calls=content["settings"]["calls"],
        concurrency=CONCURRENCY,
        score=of_equal_calls.score(content),
        age=age_of("equal_calls", content),
        share=f"{by_default(contents['gepa_adapter']):.1f}",
    )


def age_of(name: str, content: Content) -> str:
    """By how many commits a result is older than what it measures, in brackets; empty if it is not."""
    mark = mark_of(next(bench for bench in BENCHES if bench.name == name), content)
    return "" if mark is None else f" ({mark.counted} older than the code)"


def _batches(contents: Mapping[str, Content]) -> str:
    """In how many of the comparisons on real servers gepa's parallel proposals made more a minute than the defaults."""
    found = list(_on_real_servers(contents))
    older = ", some older," if any_old(ON_GPUS) else ""
    return f"{sum(each.theirs > each.ours for each in found)} of {len(found)} comparisons{older}"


@dataclass(frozen=True, slots=True)
class _Batches:
    """The proposals a minute of the defaults, and of the best of gepa's parallel widths on the same server."""

    ours: float
    theirs: float


def _on_real_servers(contents: Mapping[str, Content]) -> Iterator[_Batches]:
    ours, theirs = (rates(contents["prediction"], method) for method in ("stream", "gepa_pxn_4x4"))
    yield from (_Batches(ours[most], theirs[most]) for most in ours.keys() & theirs.keys())
    on_gpu: Rows = {(row["workload"], row["method"]): row for name in ON_GPUS for row in contents[name]["rows"]}
    for rows in (on_gpu, *places(contents["throughput_vllm_cpu"]).values()):
        widths = methods(rows, "gepa_pxn")
        for name in workloads(rows, "stream", *widths) if widths else ():
            best = max((rows[name, each] for each in widths), key=lambda row: float(row["proposals_per_min"]))
            yield _Batches(rows[name, "stream"]["proposals_per_min"], best["proposals_per_min"])
