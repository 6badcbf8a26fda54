"""How far predictions of the runs were off: the part of the page on this bench that is about the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from bench._lib.text import Content, percent, table

COLUMNS = {
    "proposals_per_min": "proposals/min",
    "output_tokens_per_s": "output tokens/s",
    "mean_in_flight": "in flight",
}
PREDICTED = dict(zip(COLUMNS, ("proposals a minute", "output tokens a second", "requests in flight"), strict=True))
SCORE = {"best_score": "best validation score"}
"""What is compared with predictions beside `COLUMNS`, where they have it."""


def gpu_name(content: Content) -> str:
    return str(content["machine"]["gpu"]).partition(",")[0]


def predicted(content: Content) -> str:
    if "predicted" not in content:
        return ""
    before = is_before(content)
    return f"""
## The simulator beside it

{BEFORE.format(file=before_file(content)) if before else _after(content)}
Predictions are the same runs on a simulated server with that profile, the means of {_seeds(content)} seeds that
were not measured. The last column has those with the shipped profile of an H100, which follows from that GPU's data
sheet.

{_beside(content)}

With the measured profile predictions are off: {off(content, "measured")}. With the shipped
profile: {off(content, "shipped")}. {gains(content)}{leads(content)}{"" if before else CORRECTED}"""


BEFORE = """\
The server's profile is older than these runs: it is of another such GPU with the same software, measured as `flowevolve
calibrate` does and corrected once for other runs. The predictions were made and committed before these runs, in
`{file}`."""
CORRECTED = """
The predictions were computed after the runs, and corrected once: the costs of a token of a prompt were measured with
texts, and are given here for the tokens that the runs send, as a made-up tokenizer makes more of the same text. That
was noticed when a first prediction of tokens was off by up to 28 %; the factor is that of the tokenizer, and no figure
of the runs was used."""


def workload(content: Content) -> str:
    """The names of the workloads."""
    return " and ".join(dict.fromkeys(f"`{row['workload']}`" for row in content["rows"]))


def is_before(content: Content) -> bool:
    """Whether the predictions were made before the runs. Older results don't say, and were not."""
    return bool(content["settings"].get("predicted_before", False))


def before_file(content: Content) -> str:
    """The file with the predictions that were made before the runs."""
    return f"bench/gpu/before_{content['rows'][0]['workload']}.json"


def _after(content: Content) -> str:
    check = content["check"]
    said = "" if check is None else f"\nIts check on other requests was off by {check['error']:+.0%}."
    return f"Before the runs, the server alone was measured as `flowevolve calibrate` does.{said}"


def _seeds(content: Content) -> int:
    return len(next(iter(content["predicted"][0]["values"].values())))


def _by_run(content: Content, profile: str) -> dict[tuple[str, str], dict[str, list[float]]]:
    """By workload and method, what each quantity of the seeds was."""
    return {
        (each["workload"], each["method"]): each["values"]
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
                digits = 2 if column in SCORE else 1
                count = f" ({row['proposals']:.0f} counted)" if column == "proposals_per_min" else ""
                measured, predicted, other = (
                    f"{value:.{digits}f}"
                    for value in (row[column], fmean(own[key][column]), fmean(shipped[key][column]))
                )
                spread = f"{predicted} ({min(own[key][column]):.{digits}f} to {max(own[key][column]):.{digits}f})"
                off_by = f"{fmean(own[key][column]) / row[column] - 1:+.0%}"
                rows.append((f"{', '.join(key)}", name, f"{measured}{count}", spread, off_by, other))
    return table(("", "", "measured", "predicted (range of seeds)", "off by", "shipped profile"), rows)


def _compared(content: Content) -> dict[str, str]:
    """The figures that predictions have, by their columns."""
    known = content["predicted"][0]["values"]
    return {column: name for column, name in (COLUMNS | SCORE).items() if column in known}


def made(content: Content) -> str:
    """Whose the profile was, and when the predictions were made, in a few words."""
    if is_before(content):
        return "of another H200, predicted before the runs"
    return "of an H200, predicted after the runs and corrected once"


def gains(content: Content) -> str:
    """What predicted and measured rates say of the gain over synchronous gepa, where it is about that."""
    pair = _stream_and_gepa(content)
    if pair is None:
        return ""
    (predicted, came_to), (of_gepa, gepas) = pair
    gain = fmean(predicted["proposals_per_min"]) / fmean(of_gepa["proposals_per_min"])
    return (
        f"The defaults make {gain:.1f} times synchronous gepa's proposals as predicted, and "
        f"{came_to['proposals_per_min'] / gepas['proposals_per_min']:.1f} times as measured."
    )


def leads(content: Content) -> str:
    """By how much the defaults were to be ahead of synchronous gepa in score, and by how much they were; nothing where
    that was not predicted.
    """
    pair = _stream_and_gepa(content)
    if pair is None or not SCORE.keys() <= _compared(content).keys():
        return ""
    (predicted, came_to), (of_gepa, gepas) = pair
    ahead = [one - other for one, other in zip(predicted["best_score"], of_gepa["best_score"], strict=True)]
    lead = came_to["best_score"] - gepas["best_score"]
    repeats = content["settings"]["repeats"]
    runs = "in one run" if repeats == 1 else f"in the mean of {repeats} runs"
    failed = "" if min(ahead) <= lead <= max(ahead) else ", so this prediction failed"
    on = f"one {gpu_name(content)} with {workload(content)}"
    return (
        f" In the best validation score on {on} the defaults were to be {fmean(ahead):.2f} ahead of synchronous gepa "
        f"({min(ahead):.2f} to {max(ahead):.2f}, by seed), and were {lead:.2f} ahead, {runs}{failed}."
    )


_Pair = tuple[Mapping[str, Sequence[float]], Content]
"""What was predicted of a method by quantity and seed, and its row."""


def _stream_and_gepa(content: Content) -> tuple[_Pair, _Pair] | None:
    """The defaults and synchronous gepa on the first workload; None where one of them was not run."""
    own, rows = _by_run(content, "measured"), {(row["workload"], row["method"]): row for row in content["rows"]}
    stream, sync = ((content["rows"][0]["workload"], method) for method in ("stream", "gepa_sync"))
    return ((own[stream], rows[stream]), (own[sync], rows[sync])) if {stream, sync} <= rows.keys() else None


def off(content: Content, profile: str) -> str:
    """By how much the predictions with the ``measured`` or the ``shipped`` profile are off, by quantity."""
    return ", ".join(
        f"{PREDICTED[column]} by {percent(middle)} in the median and {percent(worst)} at worst"
        for column, (middle, worst) in deviations(content, profile).items()
    )


def deviations(content: Content, profile: str) -> Mapping[str, tuple[float, float]]:
    """By how much these predictions are off, in the median and at worst, as shares by the names of `COLUMNS`."""
    predicted = _by_run(content, profile)
    found = {}
    for column in PREDICTED:
        errors = [
            abs(fmean(predicted[row["workload"], row["method"]][column]) / row[column] - 1)
            for row in content["rows"]
            if row[column]
        ]
        found[column] = median(errors), max(errors)
    return found
