"""The page of this bench: a real GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from bench._lib.methods.enough import LEAST, TURNS, needed
from bench._lib.text import Content, table
from bench.gpu.deviations import before_file, is_before, run_before, simulator
from bench.gpu.rows import COLUMNS, by_workload, gpu_name, minutes, runs, spanned, workloads
from bench.gpu.scores import scores, time_of_gepas

NAMES = {
    "gepa_sync": "synchronous gepa",
    "gepa_pxn_4x4": "its parallel proposals (4x4)",
    "stream": "the defaults",
    "plain": "gepa's rules in our stream (`plain`)",
    "flashevolve": "the preset `flashevolve`",
}
"""The methods that `rates` and `answer` show."""
DONE = {**COLUMNS, "validations_per_min": "whole validations/min", "accepted_per_min": "accepted/min", "calls": "calls"}


def answer(content: Content) -> str:
    several = len(by_workload(content)) > 1
    told = [
        f"{f'{workload}: ' if several else ''}"
        + ", ".join(f"`{name}` {of[name]['proposals_per_min']:.1f}" for name in NAMES if name in of)
        for workload, of in by_workload(content).items()
    ]
    return f"{'; '.join(told)}, on one {gpu_name(content)}"


def rates(results: Mapping[str, Content]) -> str:
    """A table of the proposals a minute, with their range over runs and how many were counted, and of the defaults'
    times to synchronous gepa's last score. The keys of ``results`` are the words to put after the names of a result's
    workloads.
    """
    first = next(iter(results.values()))
    model = "" if first["settings"]["model"] is not None else " (random weights, simulated words)"
    title = f"Proposals a minute on one {gpu_name(first)}{model}, and how many were counted"
    rows = [
        (f"`{workload}`, {runs(content)}{more}", *_rates(of, run_before(content)), time_of_gepas(content, of))
        for more, content in results.items()
        for workload, of in by_workload(content).items()
    ]
    return table((title, *NAMES.values(), TIMED), rows)


TIMED = "the defaults' time to synchronous gepa's last held-out score, of its own"


def _rates(of: Mapping[str, Content], before: Mapping[str, float]) -> Iterator[str]:
    for name in NAMES:
        if name not in of:
            yield "–"
            continue
        each = of[name]["values"]["proposals_per_min"]
        apart = f"{spanned(each, 1)}; " if len(each) > 1 else ""
        again = f"; {before[name]:.1f} in a run before" if name in before else ""
        yield f"{fmean(each):.1f} ({apart}{_counted(of[name])}{again})"


def _counted(row: Content) -> str:
    """How many proposals were counted in all runs, and whether they are only one round in each."""
    counted = row["values"]["proposals"]
    each = " each" if len(counted) > 1 else ""
    return f"{sum(counted):.0f}" + (f", one round{each}" if is_one_round(row) else "")


def beside(
    results: Mapping[str, Content], defaults: str, *, counted: bool = True, batches: bool = True
) -> Iterator[str]:
    """How many times the proposals of gepa's methods the defaults made on each workload. ``results`` are by page, and
    ``defaults`` is what the defaults are called. ``counted`` also says of how many proposals that is; without
    ``batches`` nothing is said of gepa's parallel proposals.
    """
    found = {
        workload: (page, of)
        for page, content in results.items()
        for workload, of in by_workload(content).items()
        if "stream" in of
    }
    if found:
        told = [f"[`{name}`]({page}) {_times(of, GEPAS[0], counted=counted)}" for name, (page, of) in found.items()]
        wide = [_times(of, GEPAS[1]) for _, of in found.values()]
        say_little = "; one round in each run, so this says little" if counted and _one_round(results.values()) else ""
        gpu = gpu_name(next(iter(results.values())))
        parallel = f"; and for each of its parallel ones (4x4{say_little}): {', '.join(wide)}" if batches else ""
        yield (
            f"On one {gpu} {defaults} made, for each proposal of synchronous gepa: {', '.join(told)}{parallel}."
            f"{_times_to_scores(results.values())}"
        )


def _one_round(results: Iterable[Content]) -> bool:
    """Whether no run counted more than one round of gepa's parallel proposals."""
    found = (of for content in results for of in by_workload(content).values())
    return all(is_one_round(of[GEPAS[1]]) for of in found if GEPAS[1] in of)


def _times_to_scores(results: Iterable[Content]) -> str:
    """What part of synchronous gepa's time the defaults took to its last score there; empty if that is not known."""
    taken = {
        workload: time_of_gepas(content, of) for content in results for workload, of in by_workload(content).items()
    }
    told = [f"`{workload}` {said}" for workload, said in taken.items() if said != "–"]
    timed = "Of synchronous gepa's time to its last held-out score, with simulated words, they took"
    return f" {timed}: {'; '.join(told)}." if told else ""


GEPAS = ("gepa_sync", "gepa_pxn_4x4")


def _times(of: Mapping[str, Content], method: str, *, counted: bool = False) -> str:
    if method not in of:
        return "–"
    ours, theirs = (fmean(of[name]["values"]["proposals_per_min"]) for name in ("stream", method))
    counts = " to ".join(f"{sum(of[name]['values']['proposals']):.0f}" for name in ("stream", method))
    return f"{ours / theirs:.1f}" + (f" ({counts})" if counted else "")


def is_one_round(row: Content) -> bool:
    """Whether each run counted no more than one round of gepa's parallel proposals."""
    places = row["method"].partition("gepa_pxn_")[2]
    batch = math.prod(map(int, places.split("x"))) if places else 0
    return all(0 < each <= batch for each in row["values"]["proposals"])


def filled(content: Content, method: str) -> Iterator[str]:
    """How many requests a method had in flight on each workload, of the most that it could have."""
    for workload, of in by_workload(content).items():
        if method in of:
            yield f"{of[method]['mean_in_flight']:.1f} of {content['settings']['concurrency']} (`{workload}`)"


DESCRIBED = {
    "gepa_sync": "the package gepa 0.1.4 with one proposal at a time",
    "gepa_pxn_4x4": "its parallel proposals, of four parents four each",
    "stream": "the defaults of flowevolve",
    "plain": "gepa's rules in its stream",
    "flashevolve": "its [preset](../how-to/presets.md) of that name",
    "ceiling": "no method but load without end: every slot has a rollout open all the time",
}


def section(content: Content) -> str:
    settings, run = content["settings"], {row["method"] for row in content["rows"]}
    methods = "; ".join(f"`{name}` is {said}" for name, said in DESCRIBED.items() if name in run)
    return f"""\
# On a GPU: {workloads(content)}

{_commands(content)}

The server is real: {settings["engine"].replace("vllm", "vLLM")} on one {gpu_name(content)}, with {_model(settings)}.
{settings.get("server", "")}

Each method has {minutes(content)} after its seed was validated, of which the first fifth does not count, and at most
{settings["concurrency"]} requests in flight. All run in real time, in random order. Runs of each method:
{settings["repeats"]}. {methods}. The workload has the number of calls and the lengths of prompts of a data set, and
none of its rows: see [its table](throughput.md).

{_table(content)}

A proposal is an answered reflection; the rates are means over runs, and what was counted is of all of them. Nearly all
the time some kernel runs, even with few requests, so a GPU that reports itself busy says nothing of how well it is
used; its power does.

{scores(content)}{_limits(content)}
{simulator(content)}
"""


def _commands(content: Content) -> str:
    """The commands that were called, without the options that depend on the machine."""
    settings = content["settings"]
    names, methods = (" ".join(dict.fromkeys(row[each] for row in content["rows"])) for each in ("workload", "method"))
    asked = (
        f"python -m bench.gpu --workloads {names} --methods {methods} --minutes {settings['minutes']:g} "
        f"--repeats {settings['repeats']} --concurrency {settings['concurrency']} --json FILE"
    )
    if is_before(content):
        before = before_file(content)
        return f"    python -m bench.gpu --predict {before}\n    {asked} --predicted {before}"
    return f"    {asked}\n    python -m bench.gpu --predict FILE"


def _ceilings(content: Content) -> dict[str, float]:
    found = by_workload(content).items()
    return {workload: of["ceiling"]["output_tokens_per_s"] for workload, of in found if "ceiling" in of}


def _model(settings: Content) -> str:
    if settings["model"] is not None:
        return f"`{settings['model']}`, which answers as it likes, at any length"
    return f"the shape `{settings['shape']}` with random weights and the simulated world's lengths and words"


def _table(content: Content) -> str:
    ceilings = _ceilings(content)
    of_ceiling = ("of the ceiling's tokens",) if ceilings else ()
    header = ("", *DONE.values(), *of_ceiling, "proposals counted", "kernels run, %", "watts")
    rows = [
        (
            f"{row['workload']}, {row['method']}",
            *(f"{row[column]:.{0 if column == 'calls' else 1}f}" for column in DONE),
            *(f"{row['output_tokens_per_s'] / each:.2f}" for each in (ceilings.get(row["workload"]),) if each),
            _counted(row),
            *(_gpu(row["gpu"], name) for name in ("utilization_percent", "watts")),
        )
        for row in content["rows"]
    ]
    return table(header, rows)


def _gpu(repeats: Sequence[Mapping[str, float] | None], name: str) -> str:
    told = [each[name] for each in repeats if each is not None]
    return f"{fmean(told):.0f}" if told else "–"


def _limits(content: Content) -> str:
    rows = [row for row in content["rows"] if row["method"] != "ceiling"]
    few = [f"`{row['method']}`" for row in rows if row["proposals"] < needed(row)]
    named = "every rate here comes" if len(few) == len(rows) else f"those of {' and '.join(few)} come"
    said = (
        f" A rate should come from {LEAST} proposals in each run, and from {TURNS} for each place of a batch; {named} "
        "from fewer."
        if few
        else ""
    )
    return f"""\
**What limits this.** The windows are short, and runs of a method differ by chance.{said} Methods with wide batches, and
those that have many proposals open, get their first results late: a short window is against their scores.
No wider batches of gepa than 4x4 were run. The same methods with windows of an hour, more widths and all settings are
on the page about [throughput](throughput.md), where the servers are simulated. On the simulated GPU the defaults leave
most of it idle, too, as they open few proposals at a time ([how many](../how-to/presets.md#how-many-flows));
`flashevolve` fills it. Whether the defaults or `flashevolve` are sooner at a score depends on the workload there, and
[in other simulated worlds](quality_others.md) on the world."""
