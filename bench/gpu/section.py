"""The section of the page on this bench: a real GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

from bench._lib.text import Content, percent, table

COLUMNS = {
    "proposals_per_min": "proposals/min",
    "output_tokens_per_s": "output tokens/s",
    "mean_in_flight": "in flight",
}
SCORE = {"best_score": "best validation score"}
"""What is compared with predictions beside `COLUMNS`, where they have it."""
STEPS = 5
"""Of a window, after each of which the table of scores says what candidates are worth."""
FEW = 10
"""With fewer proposals than these in a window, their rate says little."""
NAMES = {
    "gepa_sync": "synchronous gepa",
    "stream": "the defaults",
    "gepa_pxn_4x4": "gepa's parallel proposals (4x4)",
    "flashevolve": "the preset `flashevolve`",
}
"""The methods that `rates` names, which `answer` has in another order and with one more."""


def answer(content: Content) -> str:
    of = {row["method"]: row for row in content["rows"]}
    told = [
        f"`{name}` {of[name]['proposals_per_min']:.1f}"
        for name in ("gepa_sync", "gepa_pxn_4x4", "stream", "plain", "flashevolve")
        if name in of
    ]
    return f"{', '.join(told)}, on one {gpu_name(content)}"


def rates(content: Content, *, again: bool = False) -> str:
    """The proposals a minute, in a sentence that says how few runs and proposals they come from; shorter where it
    follows such a sentence (``again``).
    """
    of = {row["method"]: row for row in content["rows"]}
    told = [f"{said} {of[name]['proposals_per_min']:.1f}" for name, said in NAMES.items() if name in of]
    few = [f"{of[name]['proposals']:.0f} of {said}" for name, said in NAMES.items() if name in of and _is_few(of[name])]
    counted = f" Some come from few proposals: {' and '.join(few)}." if few else ""
    minutes, repeats = _minutes(content["settings"]), content["settings"]["repeats"]
    runs = f"one run of {minutes}" if repeats == 1 else f"{repeats} runs of {minutes} each"
    on = f"{runs} with the workload {_workloads(content)}"
    start = f"In {on}" if again else f"Proposals a minute on one {gpu_name(content)}, in {on}"
    return f"{start}: {', '.join(told)}.{counted} {scores(content)}"


def scores(content: Content) -> str:
    """What the best prompts of `NAMES` were worth at the end, where it is known, in a sentence."""
    worth = {row["method"]: _worth(row) for row in content["rows"] if row.get("held_out")}
    if not worth:
        return "No score can be told from that."
    told = ", ".join(f"{worth[name](math.inf):.2f}" for name in NAMES if name in worth)
    return f"Their best prompts were worth {told} in the simulated world, whose words the answers had."


def filled(content: Content, method: str) -> str:
    """How many requests a method had in flight, of how many it might have."""
    row = next(row for row in content["rows"] if row["method"] == method)
    return f"{row['mean_in_flight']:.1f} of {content['settings']['concurrency']}"


def section(content: Content) -> str:
    settings = content["settings"]
    return f"""\
# On a GPU: {_workloads(content)}

{_commands(content)}

The server is real: {settings["engine"].replace("vllm", "vLLM")} on one {gpu_name(content)}, with {_model(settings)}.
{settings.get("server", "")}

Each method has {_minutes(settings)} after its seed was validated, of which the first fifth does not count, and at most
{settings["concurrency"]} requests in flight. Runs of each method: {settings["repeats"]}, in random order.

{_table(content)}

{CEILING if _ceilings(content) else ""}Nearly all the time some kernel runs, even with few requests, so a GPU that
reports itself busy says nothing of how well it is used; its power does.

{_scores(content)}{_limits(content)}
{_predicted(content)}
"""


def _workloads(content: Content) -> str:
    return " and ".join(dict.fromkeys(f"`{row['workload']}`" for row in content["rows"]))


def _commands(content: Content) -> str:
    """What was called, but for what depends on the machine."""
    settings, workloads, methods = (
        content["settings"],
        *(" ".join(dict.fromkeys(row[each] for row in content["rows"])) for each in ("workload", "method")),
    )
    asked = (
        f"python -m bench.gpu --workloads {workloads} --methods {methods} --minutes {settings['minutes']:g} "
        f"--concurrency {settings['concurrency']} --json FILE"
    )
    if settings.get("predicted_before", False):
        return f"    python -m bench.gpu --predict bench/gpu/before.json\n    {asked} --predicted bench/gpu/before.json"
    return f"    {asked}\n    python -m bench.gpu --predict FILE"


CEILING = "`ceiling` is no method but load without end: every slot has a rollout open all the time. "


def _ceilings(content: Content) -> dict[str, float]:
    return {row["workload"]: row["output_tokens_per_s"] for row in content["rows"] if row["method"] == "ceiling"}


def _minutes(settings: Content) -> str:
    return "one minute" if settings["minutes"] == 1 else f"{settings['minutes']:g} minutes"


def gpu_name(content: Content) -> str:
    return str(content["machine"]["gpu"]).partition(",")[0]


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


def _worth(row: Content) -> Callable[[float], float]:
    """What a method's best candidate was worth after so many seconds: the mean over its runs."""

    def worth(run: Sequence[Sequence[float]], seconds: float) -> float:
        return next((each[-1] for each in reversed(run) if each[0] <= seconds), run[0][-1])

    return lambda seconds: fmean(worth(run, seconds) for run in row["held_out"])


def _scores(content: Content) -> str:
    """What candidates are worth over time, and how soon others have the last score of synchronous gepa."""
    known = [row for row in content["rows"] if row.get("held_out")]
    if not known:
        return ""
    seconds = [60 * content["settings"]["minutes"] * step / STEPS for step in range(STEPS + 1)]
    rows = [
        (f"{row['workload']}, {row['method']}", *(f"{_worth(row)(each):.2f}" for each in seconds), _sooner(row, known))
        for row in known
    ]
    header = ("worth on rows held out, after", *(f"{each:.0f} s" for each in seconds), "as good as gepa's last after")
    return f"""\
{table(header, rows)}

*Worth* is the expected score, on rows that no method has seen, of the prompt that a method would have returned then.
The answers have the words of the simulated world, in which settings were chosen with other seeds; what is real is how
long they take. The last column is when a method had what synchronous gepa had at its end.

"""


def _sooner(row: Content, known: Sequence[Content]) -> str:
    """When all runs of a method had a candidate as good as the last of synchronous gepa on that workload."""
    gepa = next((each for each in known if (each["workload"], each["method"]) == (row["workload"], "gepa_sync")), None)
    if gepa is None:
        return "–"
    last = _worth(gepa)(math.inf)
    times = [next((each[0] for each in run if each[-1] >= last), math.inf) for run in row["held_out"]]
    return "not in its window" if math.inf in times else f"{max(times):.0f} s"


def _limits(content: Content) -> str:
    few = [row["method"] for row in content["rows"] if row["method"] != "ceiling" and _is_few(row)]
    named = " and ".join(f"`{each}`" for each in few)
    said = f" Of {named} fewer than {FEW} proposals were counted, so that their rates say little." if few else ""
    scored = any(row.get("held_out") for row in content["rows"])
    short = "and no score can be told from them" if not scored else "and runs of a method differ by chance"
    return f"""\
**What limits this.** The windows are short, {short}.{said}
`stream` is the defaults. They open as few proposals at a time as pays for their validation, so that a score is reached
with few calls ([time to a score](throughput.md)), and leave most of such a GPU idle at the beginning. `flashevolve`
fills it; in the simulated comparisons it is nonetheless later at a score in most worlds ([here](quality_others.md))."""


def _predicted(content: Content) -> str:
    if "predicted" not in content:
        return ""
    before = content["settings"].get("predicted_before", False)
    return f"""
## The simulator beside it

{BEFORE if before else _after(content)}
Predictions are the same runs on a simulated server with that profile, the means of {_seeds(content)} seeds that
were not measured. The last column has those with the shipped profile of an H100, which follows from that GPU's data
sheet.

{_beside(content)}

Over the figures that are not marked as few, the measured profile is off by {off(content, "measured")}, the shipped one
by {off(content, "shipped")}. {left_out(content)}{_off_in_score(content)}{"" if before else CORRECTED}"""


BEFORE = """\
The server's profile is older than these runs: it is of another such GPU with the same software, measured as `flowevolve
calibrate` does and corrected once for other runs. The predictions were made and committed before these runs, in
`bench/gpu/before.json`."""
CORRECTED = """
The predictions were computed after the runs, and corrected once: the costs of a token of a prompt were measured with
texts, and are given here for the tokens that the runs send, as a made-up tokenizer makes more of the same text. That
was noticed when a first prediction of tokens was off by up to 28 %; the factor is that of the tokenizer, and no figure
of the runs was used."""


def _after(content: Content) -> str:
    check = content["check"]
    said = "" if check is None else f"\nIts check on other requests was off by {check['error']:+.0%}."
    return f"Before the runs, the server alone was measured as `flowevolve calibrate` does.{said}"


def _seeds(content: Content) -> int:
    return len(next(iter(content["predicted"][0]["values"].values())))


def _by_run(content: Content, profile: str) -> dict[tuple[str, str], dict[str, float]]:
    return {
        (each["workload"], each["method"]): {name: fmean(values) for name, values in each["values"].items()}
        for each in content["predicted"]
        if each["profile"] == profile
    }


def _beside(content: Content) -> str:
    own, shipped = _by_run(content, "measured"), _by_run(content, "shipped")
    rows = []
    for row in content["rows"]:
        key = (row["workload"], row["method"])
        for column, name in _compared(content).items():
            if row[column]:
                digits, few = (
                    2 if column in SCORE else 1,
                    "" if _counts(row, column) else f" (few: {row['proposals']:.0f})",
                )
                measured, predicted, other = (f"{of[column]:.{digits}f}" for of in (row, own[key], shipped[key]))
                off_by = f"{own[key][column] / row[column] - 1:+.0%}"
                rows.append((f"{', '.join(key)}", name, f"{measured}{few}", predicted, off_by, other))
    return table(("", "", "measured", "predicted", "off by", "shipped profile"), rows)


def _compared(content: Content) -> dict[str, str]:
    """The figures that predictions have, by their columns."""
    known = content["predicted"][0]["values"]
    return {column: name for column, name in (COLUMNS | SCORE).items() if column in known}


def _is_few(row: Content) -> bool:
    return float(row["proposals"]) < FEW


def _counts(row: Content, column: str) -> bool:
    """Whether a figure of a run says enough to be compared."""
    return column != "proposals_per_min" or not _is_few(row)


def made(content: Content) -> str:
    """When the predictions were made, in a sentence."""
    if content["settings"].get("predicted_before", False):
        return "There it was that of another H200, and the predictions were committed before the runs."
    return "There the predictions were computed after the runs, and corrected once."


def left_out(content: Content) -> str:
    """What `off` leaves out, and what that would say of the gain over synchronous gepa, where it is about that."""
    own, measured = _by_run(content, "measured"), {(row["workload"], row["method"]): row for row in content["rows"]}
    stream, sync = ((content["rows"][0]["workload"], method) for method in ("stream", "gepa_sync"))
    said = f"Left out of that are rates of fewer than {FEW} proposals"
    if not {stream, sync} <= measured.keys() or not any(_is_few(measured[each]) for each in (stream, sync)):
        return f"{said}."
    gains = [of[stream]["proposals_per_min"] / of[sync]["proposals_per_min"] for of in (own, measured)]
    return (
        f"{said}; by them the defaults make {gains[0]:.1f} times synchronous gepa's proposals as predicted, and "
        f"{gains[1]:.1f} times as measured."
    )


def off(content: Content, profile: str) -> str:
    """By how much the predictions with the ``measured`` or the ``shipped`` profile are off."""
    predicted = _by_run(content, profile)
    errors = [
        abs(predicted[row["workload"], row["method"]][column] / row[column] - 1)
        for row in content["rows"]
        for column in COLUMNS
        if row[column] and _counts(row, column)
    ]
    return _median_and_worst(errors)


def _median_and_worst(errors: Sequence[float]) -> str:
    return f"{percent(median(errors))} in the median and {percent(max(errors))} at worst"


def _off_in_score(content: Content) -> str:
    """By how much predicted scores are off, where there are any."""
    predicted = _by_run(content, "measured")
    errors = [
        abs(predicted[row["workload"], row["method"]][column] / row[column] - 1)
        for row in content["rows"]
        for column in _compared(content).keys() & SCORE.keys()
        if row[column]
    ]
    return f" Best scores, of one run each, are off by {_median_and_worst(errors)}." if errors else ""
