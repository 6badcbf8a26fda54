"""How far predictions of the runs were off: the part of this bench's page that is about the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median

from bench._lib.text import Content, Verdicts, percent, table
from bench._lib.timing_goal import GOAL, is_met
from bench.gpu.rows import BASE, COLUMNS, by_workload, gpu_name, spanned

PREDICTED = dict(zip(COLUMNS, ("proposals a minute", "output tokens a second", "requests in flight"), strict=True))
SCORE = {"best_score": "best validation score"}
"""What is compared with predictions besides `COLUMNS`, if the predictions have it."""


def simulator(content: Content) -> str:
    """What was predicted of the runs; empty if nothing was."""
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

With the measured profile predictions are off: {off(content, "measured")}. The goal is
{percent(GOAL["median"])} in the median and {percent(GOAL["worst"])} at worst, and is {_missed(content)}. With the
shipped profile: {off(content, "shipped")}. {gains(content)}{leads(content)}{"" if before else CORRECTED}"""


BEFORE = """\
The server's profile is older than these runs: it is of another such GPU with the same software, measured as `flowevolve
calibrate` does and corrected once for other runs. The predictions were made and committed before these runs, in
`{file}`."""
CORRECTED = """
The predictions were computed after the runs, and corrected once: the costs of a token of a prompt were measured with
texts, and are given here for the tokens that the runs send, as a made-up tokenizer makes more of the same text. That
was noticed when a first prediction of tokens was off by up to 28 %; the factor is that of the tokenizer, and no figure
of the runs was used."""


def goals(content: Content) -> Verdicts:
    """Whether each quantity was predicted as well as the goal demands; empty if nothing was predicted."""
    if "predicted" not in content:
        return {}
    return {f"prediction of {PREDICTED[name]}": is_met(*off) for name, off in deviations(content, "measured").items()}


def _missed(content: Content) -> str:
    missed = [about for about, met in goals(content).items() if not met]
    return f"missed in the {' and the '.join(missed)}" if missed else "met"


def is_before(content: Content) -> bool:
    """Whether the predictions were made before the runs. Results that don't say are older; theirs were made after."""
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
    """By workload and method, the predicted values of each quantity, one for each seed."""
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
                seeds = own[key][column]
                expected = fmean(seeds)
                other = fmean(shipped[key][column])
                shown, *bounds = (round(each, digits) for each in (row[column], min(seeds), max(seeds)))
                outside = "" if bounds[0] <= shown <= bounds[1] else ", outside the range"
                rows.append(
                    (
                        ", ".join(key),
                        name,
                        f"{row[column]:.{digits}f}",
                        f"{expected:.{digits}f} ({spanned(seeds, digits)})",
                        f"{expected / row[column] - 1:+.0%}{outside}",
                        f"{other:.{digits}f}",
                    )
                )
    return table(("", "", "measured", "predicted (range of seeds)", "off by", "shipped profile"), rows)


def _compared(content: Content) -> dict[str, str]:
    """The figures that predictions have, by their columns."""
    known = content["predicted"][0]["values"]
    return {column: name for column, name in (COLUMNS | SCORE).items() if column in known}


def made(content: Content) -> str:
    """Which GPU the profile was of, and when the predictions were made, in a few words."""
    if is_before(content):
        return f"of another {gpu_name(content)}, predicted before the runs"
    return f"of an {gpu_name(content)}, predicted after the runs and corrected once"


def gains(content: Content) -> str:
    """The gain over synchronous gepa by predicted and by measured rates; empty if one of the two was not run."""
    return "".join(
        f"The defaults make {predicted:.1f} times synchronous gepa's proposals as predicted, and {measured:.1f} times "
        "as measured."
        for _, predicted, measured in _gains(content, "measured")
    )


def gain(content: Content, profile: str) -> str:
    """The defaults' proposals divided by synchronous gepa's, as predicted with that profile and as measured, and how
    many were counted of both.
    """
    before = run_before(content)
    again = f"; in a run before {before['stream'] / before[BASE]:.1f}" if before else ""
    return ", ".join(
        f"{predicted:.1f} (measured {measured:.1f}, {_counts(by_workload(content)[workload])}{again})"
        for workload, predicted, measured in _gains(content, profile)
    )


def run_before(content: Content) -> Mapping[str, float]:
    """The proposals a minute of an earlier run of the same command, by method; empty if there was none."""
    found: Mapping[str, float] = content.get("run_before", {})
    return found


def _counts(of: Mapping[str, Content]) -> str:
    return " to ".join(f"{sum(of[method]['values']['proposals']):.0f}" for method in ("stream", BASE))


def _gains(content: Content, profile: str) -> Iterator[tuple[str, float, float]]:
    for workload, (predicted, came_to), (of_gepa, gepas) in _stream_and_gepa(content, "proposals_per_min", profile):
        if fmean(of_gepa) and fmean(gepas):
            yield workload, fmean(predicted) / fmean(of_gepa), fmean(came_to) / fmean(gepas)


def leads(content: Content) -> str:
    """By how much the defaults were predicted to be ahead of synchronous gepa in score, and by how much they were, with
    what the result says about earlier runs; empty if it was not predicted.
    """
    if not SCORE.keys() <= _compared(content).keys():
        return ""
    told = [_lead(content, *each) for each in _stream_and_gepa(content, "best_score")]
    return "".join([*told, content.get("before", "")])


def _lead(content: Content, workload: str, ours: _Figures, gepas: _Figures) -> str:
    predicted, came_to = (
        [one - other for one, other in zip(*each, strict=True)] for each in zip(ours, gepas, strict=True)
    )
    low, high, lead = min(predicted), max(predicted), fmean(came_to)
    runs = "in one run" if len(came_to) == 1 else f"in the mean of {len(came_to)} runs ({spanned(came_to)}, by run)"
    failed = "" if low <= lead <= high else ", so this prediction failed"
    return (
        f" In the best validation score on one {gpu_name(content)} with `{workload}` the defaults were to be "
        f"{fmean(predicted):.2f} ahead of synchronous gepa ({spanned(predicted)}, by seed), and were {lead:.2f} "
        f"ahead, {runs}{failed}."
    )


_Figures = tuple[Sequence[float], Sequence[float]]
"""The predicted figures of a method, by seed, and its measured ones, by run."""


def _stream_and_gepa(
    content: Content, figure: str, profile: str = "measured"
) -> Iterator[tuple[str, _Figures, _Figures]]:
    """That figure of the defaults and of synchronous gepa on each workload where both were run."""
    own = _by_run(content, profile)
    for workload, of in by_workload(content).items():
        if {"stream", BASE} <= of.keys():
            stream, gepa = (
                (own[workload, method][figure], of[method]["values"][figure]) for method in ("stream", BASE)
            )
            yield workload, stream, gepa


def off(content: Content, profile: str) -> str:
    """By how much the predictions with the ``measured`` or the ``shipped`` profile are off, by quantity."""
    return ", ".join(
        f"{PREDICTED[column]} by {percent(middle)} in the median and {percent(worst)} at worst"
        for column, (middle, worst) in deviations(content, profile).items()
    )


def deviations(content: Content, profile: str) -> Mapping[str, tuple[float, float]]:
    """The relative errors of these predictions, in the median and at worst, by the names of `COLUMNS`."""
    expected = _by_run(content, profile)
    found = {}
    for column in PREDICTED:
        errors = [
            abs(fmean(expected[row["workload"], row["method"]][column]) / row[column] - 1)
            for row in content["rows"]
            if row[column]
        ]
        found[column] = median(errors), max(errors)
    return found
