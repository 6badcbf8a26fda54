"""What README and the pages on the stream, on presets and on algorithms say in figures, made from the files in
bench/results.

``python -m bench.report.readme`` writes it between the marks that these pages have for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from bench._lib.methods.runs import WARM_UP
from bench._lib.paths import ROOT
from bench._lib.text import Content, table
from bench._lib.time_to_score import Rows, median_share, time_to_score, workloads
from bench.equal_calls import section as of_equal_calls
from bench.equal_calls.timing import CONCURRENCY
from bench.gpu import section as gpu
from bench.gpu.rows import gpu_name
from bench.prediction.section import rates
from bench.quality import beside, section as quality
from bench.report import algorithm_pages, gains
from bench.report.age import mark_of
from bench.report.benches import BENCHES, Bench
from bench.report.gains import API, GPU
from bench.report.page import ON_GPUS, command_of, confirm, gpu_table, missed_goals
from bench.report.results import read
from bench.throughput.comparisons import COMPARISONS
from bench.throughput.goals import places, runs, score_name
from bench.throughput.rows import BASE, methods

PICTURE = "hover"
"""The workload whose picture these pages show."""
WIDTH = 120
PAIRS = "median pair, of {ours} runs of ours on the virtual clock and {gepas} of gepa over HTTP on each workload"
SIMULATED = """\
All three are *simulated*, in worlds like those in which settings were chosen, and partly in the same ones. A *workload*
has the calls and lengths of the data set it is named after, and none of its rows: all of them are one made-up task."""
TIME = "Time until the defaults have gepa's own {score} after {minutes} minutes ({pairs})"
LOCKSTEP = """\
Time until the defaults have the held-out score that our own synchronous GEPA has after three hours, with {rows} rows \
for validation"""
DROP_IN = """\
Held-out score of the drop-in with `adapter_concurrency={concurrency}` (1 by default), less gepa's, with the same \
{calls} metric calls"""
BESIDE = """\
Both times are beside synchronous gepa. gepa's parallel proposals made more a minute than the defaults in {batches}; in
an hour on a simulated GPU and API the defaults make {most} times those of gepa's best parallel width. Their time to its
last score, over the soonest width's, is {pxn}."""
ROOM = """\
By default a large server is not full: of the tokens that it could write, the defaults have {gpu} on a simulated GPU and
{api} on a simulated API, and on one {name} they had {in_flight} requests in flight. The
[preset](../how-to/presets.md) `flashevolve` is made to fill one: {filled_gpu}, {filled_api}, and {filled}. The figures
are from the pages on [throughput](../benchmarks/throughput.md) and on a GPU with [hover](../benchmarks/gpu.md), with
[hotpotqa](../benchmarks/gpu_hotpotqa.md) and with [aime](../benchmarks/gpu_aime.md)."""


def figures() -> str:
    """What README says under its three numbers: the table, and what has to be said of it."""
    on_gpus, timed = {name: _result(name) for name in ON_GPUS}, _result("throughput")
    parts = (
        f"{SIMULATED} {confirm('docs/how-to/confirm.md')}",
        _numbers(),
        gains.sources(timed, _result("quality_without"), _result("quality_others"), "docs/benchmarks/"),
        BESIDE.format(batches=_batches(), most=_of_pxn(), pxn=_beside_pxn()),
        gpu_table(on_gpus, "docs/benchmarks"),
        gains.filling(timed),
        missed_goals(((bench, read(bench.name)) for bench in BENCHES), "docs/benchmarks"),
    )
    return "\n\n".join(part if part.startswith("|") else _wrapped(part) for part in parts if part)


def _numbers() -> str:
    of_quality, equal_calls, timed = (_result(name) for name in ("quality", "equal_calls", "throughput"))
    rows = [
        (
            DROP_IN.format(calls=equal_calls["settings"]["calls"], concurrency=CONCURRENCY),
            of_equal_calls.score(equal_calls),
            *_origin("equal_calls", equal_calls),
        ),
        (
            TIME.format(score=_score(timed), minutes=_minutes(timed), pairs=_pairs(timed)),
            gains.time(timed),
            *_origin("throughput", timed),
        ),
        (
            LOCKSTEP.format(rows=quality.VALIDATION),
            f"{quality.answer(of_quality)}; they take {quality.tokens_a_minute(of_quality)} times the tokens a minute",
            *_origin("quality", of_quality),
        ),
    ]
    return table(("", "measured", "command", "commit"), rows)


def _result(name: str) -> Content:
    content = read(name)
    if content is None:
        raise SystemExit(f"bench/results/{name}.json is missing: python -m bench.{name}")
    return content


def _bench(name: str) -> Bench:
    return next(bench for bench in BENCHES if bench.name == name)


def _origin(name: str, content: Content) -> tuple[str, str]:
    bench = _bench(name)
    mark = mark_of(bench, content)
    age = "" if mark is None else f"; {mark.counted} older than the code"
    return f"{command_of(bench, content)} ([page](docs/benchmarks/{name}.md))", f"{content['commit']}{age}"


def _minutes(content: Content) -> str:
    return f"{content['settings']['minutes']:g}"


def _score(content: Content) -> str:
    return score_name(places(content)[GPU])


def _pairs(content: Content) -> str:
    found = places(content).values()
    return PAIRS.format(ours=runs(found, "stream"), gepas=runs(found, BASE))


def _of_pxn() -> str:
    """The proposals of the defaults on the simulated servers, over those of gepa's best parallel width."""
    return " and ".join(_share(places(_result("throughput"))[each], "stream_vs_gepa_pxn") for each in (GPU, API))


def _beside_pxn() -> str:
    """The time to the last score of gepa's best parallel width on the simulated servers, of the soonest width's."""
    found = places(_result("throughput"))
    timed = (time_to_score(found[each], "stream", methods(found[each], "gepa_pxn")) for each in (GPU, API))
    on_gpu, on_api = map(median_share, timed)
    return f"{on_gpu}, and {on_api}"


def _batches() -> str:
    """In how many comparisons on real servers gepa's best parallel proposals were more a minute, and of how many; and
    how many of these saw but one round.
    """
    found = list(_on_real_servers())
    more = [each for each in found if each.theirs > each.ours]
    once = sum(each.once for each in more)
    short = f" ({once} so short that they saw one round of them)" if once else ""
    return f"{len(more)} of {len(found)} comparisons on real servers{short}"


@dataclass(frozen=True, slots=True)
class _Batches:
    """The proposals a minute of the defaults and the most of gepa's parallel ones beside them, and whether these were
    one round in each run.
    """

    ours: float
    theirs: float
    once: bool = False


def _on_real_servers() -> Iterator[_Batches]:
    prediction = _result("prediction")
    ours, theirs = rates(prediction, "stream"), rates(prediction, "gepa_pxn_4x4")
    yield from (_Batches(ours[most], theirs[most]) for most in ours.keys() & theirs.keys())
    on_gpu = {(row["workload"], row["method"]): row for name in ON_GPUS for row in _result(name)["rows"]}
    for rows in (on_gpu, *places(_result("throughput_vllm_cpu")).values()):
        widths = methods(rows, "gepa_pxn")
        for name in workloads(rows, "stream", *widths) if widths else ():
            best = max((rows[name, each] for each in widths), key=lambda row: float(row["proposals_per_min"]))
            yield _Batches(rows[name, "stream"]["proposals_per_min"], best["proposals_per_min"], gpu.is_one_round(best))


def picture(root: str, glossary: str) -> str:
    """The picture of what a server does, with what has to be said of it, and with these paths on the page."""
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
        f"*A minute on a simulated GPU, {content['settings']['minutes'] * WARM_UP:g} minutes after the start. "
        f"The [workload]({glossary}) is `{PICTURE}`{most}. On average over whole runs the "
        f"defaults have {_range(ours)} of {content['settings']['concurrency']} requests in flight, by workload, "
        f"synchronous gepa {_range(theirs)}, and gepa's parallel proposals (4x4) {_range(batches)}.*"
    )
    return (
        f"![What the server is doing over time: synchronous gepa, and the stream with its defaults]({file})\n\n{said}"
    )


def _range(means: Mapping[str, float]) -> str:
    return f"{min(means.values()):.0f} to {max(means.values()):.0f}"


def room() -> str:
    """How much of a large server the defaults use, and the preset that is made to fill one."""
    found, on_gpu = places(_result("throughput")), [_result(name) for name in ON_GPUS]
    room = ROOM.format(
        gpu=_share(found[GPU], "saturation"),
        api=_share(found[API], "saturation"),
        name=gpu_name(on_gpu[0]),
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


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


README, STREAM = ROOT / "README.md", ROOT / "docs" / "concepts" / "stream.md"
PRESETS = ROOT / "docs" / "how-to" / "presets.md"
BLOCKS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    README: {"picture": lambda: picture("", "docs/reference/glossary.md"), "figures": figures},
    STREAM: {"picture": lambda: picture("../../", "../reference/glossary.md"), "room": room},
    **algorithm_pages.BLOCKS,
    PRESETS: {"beside": lambda: _wrapped(beside.beside_presets(_result("quality_others")))},
}
"""For each page, what makes the text between its marks."""


def written(path: Path) -> str:
    """The text of a page, with what is made in its places."""
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
