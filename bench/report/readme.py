"""Makes the figures in README and in the pages on the stream, on presets and on algorithms from the files in
bench/results.

``python -m bench.report.readme`` writes them between the marks that these pages have for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench._lib.methods.runs import WARM_UP
from bench._lib.paths import ROOT
from bench._lib.text import Content, wrapped
from bench._lib.time_to_score import Rows, workloads
from bench.equal_calls import section as of_equal_calls
from bench.gpu import section as gpu
from bench.gpu.rows import gpu_name
from bench.quality import beside
from bench.report import aiming, algorithm_pages, baseline, gains, merging, overview
from bench.report.age import the_defaults
from bench.report.bench import count_goals
from bench.report.benches import BENCHES
from bench.report.beside_gepa import MERGING, SIMULATED, age_of
from bench.report.first_page import ON_GPUS
from bench.report.gains import API, GPU
from bench.report.kinds import by_kind
from bench.report.results import read
from bench.throughput.comparisons import COMPARISONS
from bench.throughput.goals import places
from bench.throughput.rows import BASE

PICTURE = "hover"
"""The workload whose picture these pages show."""
BENCHMARKS = "docs/benchmarks/"
MISSED = "**[{missed} of our {goals} goals]({page}) are missed: {kinds}.**"
DROP_IN = "[At {calls} metric calls]({page}) our drop-in for `gepa.optimize` shows {score}{age}."
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
        " ".join(filter(None, (overview.lead_in_short(timed), _missed()))),
        overview.in_short(timed),
        f"[Beside gepa]({BENCHMARKS}beside_gepa.md) has these figures in full, and says how they are counted.",
        "\n".join(wrapped(f"- **{about}.** {said}", "  ") for about, said in _to_know(timed).items()),
    )
    return _all_wrapped(parts)


def _missed() -> str:
    found = [(bench, content) for bench in BENCHES if (content := read(bench.name)) is not None]
    missed, goals = count_goals(found)
    return MISSED.format(missed=missed, goals=goals, kinds=by_kind(found), page="docs/benchmarks.md") if missed else ""


def _to_know(timed: Content) -> Mapping[str, str]:
    """What the table does not show, in a few sentences."""
    on_gpus = {f"{BENCHMARKS}{name}.md": _result(name) for name in ON_GPUS}
    told = {
        "Simulated": SIMULATED.format(docs="docs/"),
        "Other methods": gains.others_in_short(timed),
        "At equal cost": f"{gains.score_at_equal_tokens(timed)} {_drop_in()}",
        "Where it comes from": f"{MERGING} {merging.without_merging(_result('quality_without'), BENCHMARKS)}".strip(),
        "On a real GPU": " ".join(gpu.beside(on_gpus, the_defaults(ON_GPUS), batches=False)),
    }
    return {about: said for about, said in told.items() if said}


def _drop_in() -> str:
    content = _result("equal_calls")
    return DROP_IN.format(
        calls=content["settings"]["calls"],
        page=f"{BENCHMARKS}equal_calls.md",
        score=of_equal_calls.score_in_short(content),
        age=age_of("equal_calls", content),
    )


def _result(name: str) -> Content:
    content = read(name)
    if content is None:
        raise SystemExit(f"bench/results/{name}.json is missing: python -m bench.{name}")
    return content


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
    said = wrapped(
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
    return wrapped(f"{room} {gains.filling(_result('throughput'))}")


def _filled(on_gpus: Iterable[Content], method: str) -> str:
    return " and ".join(said for each in on_gpus for said in gpu.filled(each, method))


def _share(rows: Rows, comparison: str) -> str:
    found = COMPARISONS[comparison].found(rows)
    return "–" if found is None else f"{found.mean:.2f}"


def _all_wrapped(parts: Iterable[str]) -> str:
    """Wrap paragraphs, but leave tables and lists as they are."""
    return "\n\n".join(part if part.startswith(("|", "-")) else wrapped(part) for part in parts)


README, STREAM = ROOT / "README.md", ROOT / "docs" / "concepts" / "stream.md"
PRESETS = ROOT / "docs" / "how-to" / "presets.md"
BLOCKS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    README: {"picture": lambda: picture("", "docs/reference/glossary.md"), "figures": figures},
    STREAM: {
        "picture": lambda: picture("../../", "../reference/glossary.md"),
        "room": room,
        "lockstep": lambda: wrapped(baseline.beside_gepa(_result("throughput"))),
    },
    **algorithm_pages.BLOCKS,
    PRESETS: {
        "beside": lambda: _all_wrapped(beside.beside_presets(_result("quality_others")).split("\n\n")),
        "aim": lambda: wrapped(aiming.beside_defaults(_result("throughput"))),
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
