"""Makes the figures in README and in the pages on the stream, on presets and on algorithms from the files in
bench/results.

``python -m bench.report.readme`` writes them between the marks that these pages have for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from bench._lib.methods.runs import WARM_UP
from bench._lib.paths import ROOT
from bench._lib.text import Content
from bench._lib.time_to_score import Rows, workloads
from bench.equal_calls import section as of_equal_calls
from bench.equal_calls.timing import CONCURRENCY
from bench.gepa_adapter.section import by_default
from bench.gpu import section as gpu
from bench.gpu.rows import gpu_name
from bench.prediction.section import rates
from bench.quality import beside
from bench.report import aiming, algorithm_pages, baseline, gains, merging, overview
from bench.report.age import any_old, mark_of, the_defaults
from bench.report.bench import count_goals
from bench.report.benches import BENCHES
from bench.report.first_page import ON_GPUS
from bench.report.gains import API, GPU
from bench.report.kinds import by_kind
from bench.report.results import read
from bench.throughput.comparisons import COMPARISONS
from bench.throughput.goals import places
from bench.throughput.notes import COMFORTABLE
from bench.throughput.rows import BASE, methods

PICTURE = "hover"
"""The workload whose picture these pages show."""
WIDTH = 120
FOLDER = "docs/benchmarks/"
SIMULATED = """\
Servers and all words are [simulated](docs/concepts/simulator.md), settings were chosen in such worlds, and each
*workload* is the same made-up task, with a data set's calls and prompt lengths, not its rows."""
DROP_IN = """\
[At {calls} metric calls]({page}) the drop-in for `gepa.optimize` (`adapter_concurrency={concurrency}`) shows
{score}{age}. With 1, the default, it was not run; it makes [{share} times gepa's proposals]({adapter})."""
MERGING = f"The table's world merges up to {COMFORTABLE} edits without loss."
BATCHES = ", and more a minute than these in {batches} on real servers"
MISSED = "**[{missed} of our {goals} goals]({page}) are missed: {kinds}.**"
ROOM = """\
By default a large server is not full. With the defaults a simulated GPU writes {gpu} of the tokens that it could write,
and a simulated API {api}; on one {name} {defaults} had {in_flight} requests in flight. The
[preset](../how-to/presets.md) `flashevolve` is made to fill a server: with it these write {filled_gpu} and {filled_api}
of what they could, and on the {name} it had {filled} requests in flight. The figures
are from the pages on [throughput](../benchmarks/throughput.md) and on a GPU with [hover](../benchmarks/gpu.md), with
[hotpotqa](../benchmarks/gpu_hotpotqa.md) and with [aime](../benchmarks/gpu_aime.md)."""


def figures() -> str:
    """What README says about gains and what they cost."""
    timed = _result("throughput")
    parts = (
        " ".join(filter(None, (overview.lead(timed), _missed()))),
        overview.words(timed),
        overview.methods_beside_gepa(timed, "docs/how-to/presets.md#how-many-flows"),
        overview.set_up(timed, FOLDER),
        "\n".join(_wrapped(f"- **{about}.** {said}", "  ") for about, said in _to_know(timed).items()),
    )
    return _all_wrapped(parts)


def _to_know(timed: Content) -> Mapping[str, str]:
    """What the table does not show."""
    edits = merging.merging(_result("quality_without"), _result("quality_others"), FOLDER)
    on_gpus = {f"{FOLDER}{name}.md": _result(name) for name in ON_GPUS}
    told = {
        "Simulated": SIMULATED,
        "Parallel proposals": gains.parallel(timed, BATCHES.format(batches=_batches())),
        "Others that merge": gains.merging_peer(timed, aiming.beside_peer(timed)),
        "Scores at equal cost": f"{gains.at_equal_tokens(timed)} {_drop_in()}",
        "Where it comes from": f"{MERGING} {edits}".strip(),
        "On a real GPU": " ".join(gpu.beside(on_gpus, the_defaults(ON_GPUS))),
    }
    return {about: said for about, said in told.items() if said}


def _drop_in() -> str:
    content = _result("equal_calls")
    return DROP_IN.format(
        calls=content["settings"]["calls"],
        concurrency=CONCURRENCY,
        score=of_equal_calls.score(content),
        page=f"{FOLDER}equal_calls.md",
        age=_age("equal_calls", content),
        share=f"{by_default(_result('gepa_adapter')):.1f}",
        adapter=f"{FOLDER}gepa_adapter.md",
    )


def _missed() -> str:
    found = [(bench, content) for bench in BENCHES if (content := read(bench.name)) is not None]
    missed, goals = count_goals(found)
    return MISSED.format(missed=missed, goals=goals, kinds=by_kind(found), page="docs/benchmarks.md") if missed else ""


def _result(name: str) -> Content:
    content = read(name)
    if content is None:
        raise SystemExit(f"bench/results/{name}.json is missing: python -m bench.{name}")
    return content


def _age(name: str, content: Content) -> str:
    """By how many commits a result is older than what it measures, in brackets; empty if it is not."""
    mark = mark_of(next(bench for bench in BENCHES if bench.name == name), content)
    return "" if mark is None else f" ({mark.counted} older than the code)"


def _batches() -> str:
    """In how many of the comparisons on real servers gepa's parallel proposals made more a minute than the defaults."""
    found = list(_on_real_servers())
    older = ", some older," if any_old(ON_GPUS) else ""
    return f"{sum(each.theirs > each.ours for each in found)} of {len(found)} comparisons{older}"


@dataclass(frozen=True, slots=True)
class _Batches:
    """The proposals a minute of the defaults, and of the best of gepa's parallel widths on the same server."""

    ours: float
    theirs: float


def _on_real_servers() -> Iterator[_Batches]:
    prediction = _result("prediction")
    ours, theirs = rates(prediction, "stream"), rates(prediction, "gepa_pxn_4x4")
    yield from (_Batches(ours[most], theirs[most]) for most in ours.keys() & theirs.keys())
    on_gpu = {(row["workload"], row["method"]): row for name in ON_GPUS for row in _result(name)["rows"]}
    for rows in (on_gpu, *places(_result("throughput_vllm_cpu")).values()):
        widths = methods(rows, "gepa_pxn")
        for name in workloads(rows, "stream", *widths) if widths else ():
            best = max((rows[name, each] for each in widths), key=lambda row: float(row["proposals_per_min"]))
            yield _Batches(rows[name, "stream"]["proposals_per_min"], best["proposals_per_min"])


def picture(root: str, glossary: str) -> str:
    """The picture of what a server does, with its caption. ``root`` and ``glossary`` are paths from the page."""
    content = _result("throughput")
    rows = places(content)[GPU]
    ours, theirs, batches = (
        {name: rows[name, method]["mean_in_flight"] for name in workloads(rows, method)}
        for method in ("stream", BASE, "gepa_pxn_4x4")
    )
    most = (
        f", the one of {len(ours)} that has most in flight" if max(ours, key=lambda name: ours[name]) == PICTURE else ""
    )
    file = f"{root}bench/results/throughput/timeline_qwen3-8b-h100_{PICTURE}.svg"
    said = _wrapped(
        f"*Minute {content['settings']['minutes'] * WARM_UP:g} on a simulated GPU, with the [workload]({glossary}) "
        f"`{PICTURE}`{most}. In whole runs the defaults have {_range(ours)} of {content['settings']['concurrency']} "
        f"requests in flight, by workload, synchronous gepa {_range(theirs)}, and its parallel proposals (4x4) "
        f"{_range(batches)}.*"
    )
    return f"![{ALT}]({file})\n\n{said}"


ALT = "What the server is doing over time: synchronous gepa, its parallel proposals, and the stream with its defaults"


def _range(means: Mapping[str, float]) -> str:
    return f"{min(means.values()):.0f} to {max(means.values()):.0f}"


def room() -> str:
    """How much of a large server the defaults use, and the preset that is made to fill one."""
    found, on_gpu = places(_result("throughput")), [_result(name) for name in ON_GPUS]
    room = ROOM.format(
        gpu=_share(found[GPU], "saturation"),
        api=_share(found[API], "saturation"),
        name=gpu_name(on_gpu[0]),
        defaults=the_defaults(ON_GPUS),
        in_flight=_filled(on_gpu, "stream"),
        filled_gpu=_share(found[GPU], "flashevolve_saturation"),
        filled_api=_share(found[API], "flashevolve_saturation"),
        filled=_filled(on_gpu, "flashevolve"),
    )
    return _wrapped(f"{room} {gains.filling(_result('throughput'))}")


def _filled(on_gpus: Iterable[Content], method: str) -> str:
    return " and ".join(said for each in on_gpus for said in gpu.filled(each, method))


def _share(rows: Rows, comparison: str) -> str:
    found = COMPARISONS[comparison].found(rows)
    return "–" if found is None else f"{found.mean:.2f}"


def _wrapped(text: str, indent: str = "") -> str:
    """Wrap a text at `WIDTH`. ``indent`` goes before all lines but the first."""
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)


def _all_wrapped(parts: Iterable[str]) -> str:
    """Wrap paragraphs, but leave tables and lists as they are."""
    return "\n\n".join(part if part.startswith(("|", "-")) else _wrapped(part) for part in parts)


README, STREAM = ROOT / "README.md", ROOT / "docs" / "concepts" / "stream.md"
PRESETS = ROOT / "docs" / "how-to" / "presets.md"
BLOCKS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    README: {"picture": lambda: picture("", "docs/reference/glossary.md"), "figures": figures},
    STREAM: {
        "picture": lambda: picture("../../", "../reference/glossary.md"),
        "room": room,
        "lockstep": lambda: _wrapped(baseline.beside_gepa(_result("throughput"))),
    },
    **algorithm_pages.BLOCKS,
    PRESETS: {
        "beside": lambda: _all_wrapped(beside.beside_presets(_result("quality_others")).split("\n\n")),
        "aim": lambda: _wrapped(aiming.beside_defaults(_result("throughput"))),
    },
}
"""For each page, the functions that make the texts between its marks."""


def written(path: Path) -> str:
    """The text of a page, with the generated texts between its marks."""
    text = path.read_text(encoding="utf-8")
    for name, made in BLOCKS[path].items():
        begin, end = f"<!-- {name}: python -m bench.report.readme -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}{made()}\n{end}{rest.split(end, 1)[1]}"
    return text


def main() -> None:
    for path in BLOCKS:
        path.write_text(written(path), encoding="utf-8")


if __name__ == "__main__":
    main()
