"""The section of the page on this bench: a real GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from bench._lib.methods.enough import LEAST, TURNS, needed
from bench._lib.methods.spent import Unit, worth_at
from bench._lib.text import Content, table
from bench._lib.time_to_score import median_share, time_to_score
from bench.gpu.deviations import COLUMNS, before_file, gpu_name, is_before, predicted, workload

STEPS = 5
"""Of a window, after each of which the table of scores says what candidates are worth."""
NAMES = {
    "gepa_sync": "synchronous gepa",
    "gepa_pxn_4x4": "its parallel proposals (4x4)",
    "stream": "the defaults",
    "flashevolve": "the preset `flashevolve`",
}
"""The methods that `rates` has; `answer` has one more."""


def answer(content: Content) -> str:
    of = {row["method"]: row for row in content["rows"]}
    told = [
        f"`{name}` {of[name]['proposals_per_min']:.1f}"
        for name in ("gepa_sync", "gepa_pxn_4x4", "stream", "plain", "flashevolve")
        if name in of
    ]
    return f"{', '.join(told)}, on one {gpu_name(content)}"


def rates(results: Mapping[str, Content]) -> str:
    """A table of the proposals a minute and of how many were counted. ``results`` are by how their rows begin."""
    first = next(iter(results.values()))
    model = "" if first["settings"]["model"] is not None else " (random weights, simulated words)"
    title = f"Proposals a minute on one {gpu_name(first)}{model}, and how many were counted"
    rows = [(f"{name}, {_runs(each)}", *_rates(each)) for name, each in results.items()]
    return table((title, *NAMES.values()), rows)


def _rates(content: Content) -> Iterator[str]:
    of = {row["method"]: row for row in content["rows"]}
    for name in NAMES:
        yield f"{of[name]['proposals_per_min']:.1f} ({_counted(of[name])})" if name in of else "–"


def _runs(content: Content) -> str:
    minutes, repeats = _minutes(content["settings"]), content["settings"]["repeats"]
    return f"one run of {minutes}" if repeats == 1 else f"{repeats} runs of {minutes} each"


def _counted(row: Content) -> str:
    """The proposals counted in all runs, and that there is no more than one batch in a run, if so."""
    places = row["method"].partition("gepa_pxn_")[2]
    batch = math.prod(map(int, places.split("x"))) if places else 0
    counted = row["values"]["proposals"]
    return f"{sum(counted):.0f}" + (", one round each" if 0 < max(counted) <= batch else "")


def ends(content: Content) -> str:
    """Which held-out score the defaults and synchronous gepa end with, and how soon the defaults have gepa's, in a
    sentence; nothing where there is one run of each, which says nothing of scores.
    """
    of = {row["method"]: row for row in content["rows"]}
    stream, gepa = of["stream"], of["gepa_sync"]
    if content["settings"]["repeats"] == 1:
        return ""
    ours, gepas = (
        f"{fmean(last):.2f} ({min(last):.2f} to {max(last):.2f})"
        for last in ([run[-1][-1] for run in row["held_out"]] for row in (stream, gepa))
    )
    time = _sooner(stream, content["rows"])
    runs = content["settings"]["repeats"]
    return (
        f"In the {runs} runs with {workload(content)} the defaults end with {ours} on rows held "
        f"out and synchronous gepa with {gepas}; they have that after {time}, of its time."
    )


def filled(content: Content, method: str) -> str:
    """How many requests a method had in flight, of how many it might have."""
    row = next(row for row in content["rows"] if row["method"] == method)
    return f"{row['mean_in_flight']:.1f} of {content['settings']['concurrency']}"


def section(content: Content) -> str:
    settings = content["settings"]
    return f"""\
# On a GPU: {workload(content)}

{_commands(content)}

The server is real: {settings["engine"].replace("vllm", "vLLM")} on one {gpu_name(content)}, with {_model(settings)}.
{settings.get("server", "")}

Each method has {_minutes(settings)} after its seed was validated, of which the first fifth does not count, and at most
{settings["concurrency"]} requests in flight. Runs of each method: {settings["repeats"]}, in random order. `gepa_sync`
is the package gepa 0.1.4 with one proposal at a time, `gepa_pxn_4x4` its parallel proposals, of four parents four
each; `stream` is the defaults of flowevolve, `plain` gepa's rules in its stream, and `flashevolve` its
[preset](../how-to/presets.md) of that name. The workload has the number of calls and the lengths of
prompts of a data set, and none of its rows: see [its table](throughput.md).

{_table(content)}

{CEILING if _ceilings(content) else ""}Nearly all the time some kernel runs, even with few requests, so a GPU that
reports itself busy says nothing of how well it is used; its power does.

{_scores(content)}{_limits(content)}
{predicted(content)}
"""


def _commands(content: Content) -> str:
    """What was called, but for what depends on the machine."""
    settings, workloads, methods = (
        content["settings"],
        *(" ".join(dict.fromkeys(row[each] for row in content["rows"])) for each in ("workload", "method")),
    )
    asked = (
        f"python -m bench.gpu --workloads {workloads} --methods {methods} --minutes {settings['minutes']:g} "
        f"--repeats {settings['repeats']} --concurrency {settings['concurrency']} --json FILE"
    )
    if is_before(content):
        return (
            f"    python -m bench.gpu --predict {before_file(content)}\n    {asked} --predicted {before_file(content)}"
        )
    return f"    {asked}\n    python -m bench.gpu --predict FILE"


CEILING = "`ceiling` is no method but load without end: every slot has a rollout open all the time. "


def _ceilings(content: Content) -> dict[str, float]:
    return {row["workload"]: row["output_tokens_per_s"] for row in content["rows"] if row["method"] == "ceiling"}


def _minutes(settings: Content) -> str:
    return "one minute" if settings["minutes"] == 1 else f"{settings['minutes']:g} minutes"


def _model(settings: Content) -> str:
    if settings["model"] is not None:
        return f"`{settings['model']}`, which answers as it likes, at any length"
    return f"the shape `{settings['shape']}` with random weights and the simulated world's lengths and words"


def _table(content: Content) -> str:
    ceilings = _ceilings(content)
    header = ("", *COLUMNS.values(), "of the ceiling's tokens", "proposals counted", "kernels run, %", "watts")
    rows = [
        (
            f"{row['workload']}, {row['method']}",
            *(f"{row[column]:.1f}" for column in COLUMNS),
            f"{row['output_tokens_per_s'] / ceilings[row['workload']]:.2f}" if row["workload"] in ceilings else "–",
            f"{sum(row['values']['proposals']):.0f}",
            *(_gpu(row["gpu"], name) for name in ("utilization_percent", "watts")),
        )
        for row in content["rows"]
    ]
    return table(header, rows)


def _gpu(repeats: Sequence[Mapping[str, float] | None], name: str) -> str:
    told = [each[name] for each in repeats if each is not None]
    return f"{fmean(told):.0f}" if told else "–"


def _worth(row: Content, most: float, spent: Unit = "seconds") -> float:
    """What a method's best candidate was worth when so much was spent: the mean over its runs."""
    return fmean(worth_at(run, spent, most) for run in row["held_out"])


def _scores(content: Content) -> str:
    """What candidates are worth over time, and how soon others have the last score of synchronous gepa."""
    known = [row for row in content["rows"] if row.get("held_out")]
    if not known:
        return ""
    seconds = [60 * content["settings"]["minutes"] * step / STEPS for step in range(STEPS + 1)]
    rows = [
        (
            f"{row['workload']}, {row['method']}",
            *(f"{_worth(row, each):.2f}" for each in seconds),
            _sooner(row, known),
            _at_equal_calls(row, known),
        )
        for row in known
    ]
    header = (
        "worth on rows held out, after", *(f"{each:.0f} s" for each in seconds), "time to gepa's last, of gepa's",
        "at equal calls, less gepa's",
    )  # fmt: skip
    return f"""\
{table(header, rows)}

*Worth* is the expected score, on rows that no method has seen, of the prompt that a method would have returned then.
The answers have the words of the simulated world, in which settings were chosen with other seeds; what is real is how
long they take. *Time to gepa's last* is when a run of a method had what a run of synchronous gepa had at its end, over
that run's own time: the median and the range of all pairs of such runs. *Equal calls* are as many as the run that made
fewest. {_sure(content["settings"]["repeats"])}

"""


def _sure(repeats: int) -> str:
    if repeats == 1:
        return "With one run of each method none of these differences is sure."
    return f"All but the times are means of {repeats} runs, which are few: a difference may be chance."


def _of_gepa(row: Content, known: Sequence[Content]) -> Content | None:
    """The row of synchronous gepa on the same workload, where it was run."""
    return next((each for each in known if (each["workload"], each["method"]) == (row["workload"], "gepa_sync")), None)


def _at_equal_calls(row: Content, known: Sequence[Content]) -> str:
    """How much more a method's best candidate was worth than synchronous gepa's, when both had made as many calls."""
    gepa = _of_gepa(row, known)
    if gepa is None or gepa is row:
        return "–"
    calls = min(min(each["values"]["calls"]) for each in (row, gepa))
    return f"{_worth(row, calls, 'calls') - _worth(gepa, calls, 'calls'):+.2f}"


def _sooner(row: Content, known: Sequence[Content]) -> str:
    """A method's time to the last score of synchronous gepa on that workload, over gepa's own."""
    gepa = _of_gepa(row, known)
    if gepa is None or gepa is row:
        return "–"
    pair = {(each["workload"], each["method"]): each for each in (row, gepa)}
    return median_share(time_to_score(pair, row["method"], [gepa["method"]]))


def _limits(content: Content) -> str:
    rows = [row for row in content["rows"] if row["method"] != "ceiling"]
    few = [row["method"] for row in rows if row["proposals"] < needed(row)]
    named = "any method" if len(few) == len(rows) else " and ".join(f"`{each}`" for each in few)
    said = (
        f" A rate should come from {LEAST} proposals, and from {TURNS} for each place of a batch; that of {named} "
        "comes from fewer."
        if few
        else ""
    )
    return f"""\
**What limits this.** The windows are short, and runs of a method differ by chance.{said} Methods with wide batches, and
those that have many proposals open, get their first results late: a short window is against their scores.
No wider batches of gepa than 4x4 were run. The same methods with windows of an hour, more widths and all settings are
on the page about [throughput](throughput.md), where the servers are simulated. There too the defaults leave most of
such a GPU idle, as they open no more proposals at a time than pay for their validation, and `flashevolve` fills it.
Which of the two is sooner at a score depends on the workload there, and in most worlds [it is the
defaults](quality_others.md)."""
