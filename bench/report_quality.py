"""Score, time and tokens of the stream beside lockstep: a section of docs/benchmarks.md, made from the bench's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Content = Mapping[str, Any]
GOAL = 0.25
"""Of lockstep's time, for its final score (median)."""


def section(content: Content) -> str:
    """Markdown, with its heading."""
    settings = content["settings"]
    return "\n\n".join(
        (
            "## Quality",
            "    python -m bench.quality --json bench/results/quality.json --figure bench/results/quality.svg",
            _what(settings),
            _headline(content),
            _table(content),
            _losses(content),
            "![best score over time](../bench/results/quality.svg)",
            _choice(content),
        )
    )


def _what(settings: Content) -> str:
    worlds = "\n".join(f"- `{name}`: {world['about']}" for name, world in settings["worlds"].items())
    return (
        f"*Simulated* ({settings['profile']}, world `rules`): {len(settings['seeds'])} seeds in each of "
        f"{len(settings['worlds'])} settings, every seed with {settings['rows']} rows of its own. *Lockstep* is "
        "synchronous GEPA, the published loop, one proposal at a time, for "
        f"{settings['minutes']:.0f} virtual minutes. It is ours, with the decisions of the gepa package at width 1: "
        "that package can't run on a virtual clock. A stream stops when it has lockstep's final score and has spent "
        "lockstep's tokens, prompts included, so it may end with less than it could; one that has not got that score "
        "in twice lockstep's time is given up and counts as 2. *Validation* is the score by which the best candidate "
        "is chosen; *held out* is what that candidate is worth on rows no selection has seen. "
        "Intervals are 95 % (bootstrap over seeds, within worlds).\n\n" + worlds
    )


def _headline(content: Content) -> str:
    time, tokens = content["time_to_sync_score"], content["score_at_equal_tokens"]
    method = content["methods"][content["method"]]
    low = tokens["ci95"][0]
    rows = [
        (
            f"`{content['method']}`: time to lockstep's final score, of lockstep's time to it",
            f"median {_number(time, 'median')}, at most {_most(time)}",
            f"median ≤ {GOAL:g}: {_verdict(time['median'] <= GOAL)}",
        ),
        (
            "validation score at equal tokens, less lockstep's",
            _signed(tokens),
            f"interval not below 0: {_verdict(low >= 0)}",
        ),
        ("the same, held out", _signed(method["held_out_at_equal_tokens"]), ""),
        (
            "gain in 30 minutes over lockstep's (the paper's normalised evolution rate)",
            f"median {_number(method['evolution_rate'], 'median')}",
            "the paper: 2.27, 1.15, 0.88 on three data sets",
        ),
        (
            "time to 95 % of lockstep's gain, of lockstep's time to that",
            f"median {_number(method['time_to_most_of_it'], 'median')}",
            "",
        ),
    ]
    return _markdown(("", "measured", "goal"), rows)


def _table(content: Content) -> str:
    moments = list(content["rows"][0]["by_minutes_of_sync"])
    header = (
        "world",
        "stream",
        "lockstep's final score",
        "time to it (max)",
        "evolution rate",
        *(f"equal tokens, {moment} min" for moment in moments),
        f"held out, {moments[-1]} min",
        "proposals/min (lockstep's)",
    )
    return _markdown(header, (_row(row, moments) for row in content["rows"])) + (
        "\n\n*Equal tokens, m min*: validation score of the stream when it had spent what lockstep had by minute m, "
        "less lockstep's score then."
    )


def _row(row: Content, moments: Sequence[str]) -> tuple[str, ...]:
    time, rate = row["time_to_sync_score"], row["proposals_per_minute"]
    equal = [_signed(row["by_minutes_of_sync"][moment]["validation"]) for moment in moments]
    return (
        row["world"],
        row["method"],
        f"{row['sync_final_score']['mean']:.3f}",
        f"{_number(time, 'median')} (max {_most(time)})",
        _number(row["evolution_rate"], "median"),
        *equal,
        _signed(row["by_minutes_of_sync"][moments[-1]]["held_out"]),
        f"{rate['stream']['mean']:.1f} ({rate['sync']['mean']:.1f})",
    )


def _losses(content: Content) -> str:
    """Where the stream is behind, in so many words."""
    lines = []
    for row in content["rows"]:
        behind = [
            f"{kind} score at the tokens of lockstep's first {moment} minutes {_signed(figures[key])}"
            for moment, figures in row["by_minutes_of_sync"].items()
            for kind, key in (("validation", "validation"), ("held-out", "held_out"))
            if figures[key]["ci95"][1] < 0
        ]
        time = row["time_to_sync_score"]
        if time["median"] > GOAL:
            behind.append(f"time to lockstep's final score {_number(time, 'median')} of lockstep's")
        if time["not_reached"]:
            behind.append(f"{time['not_reached']} of {time['n']} seeds never had that score in the same time")
        if behind:
            lines.append(f"- `{row['world']}`, `{row['method']}`: {'; '.join(behind)}.")
    if not lines:
        return "In no world the interval lies below lockstep, and the goal for time is met in each."
    return "Where the stream loses (the whole interval below lockstep), or misses the goal for time:\n\n" + "\n".join(
        lines
    )


def _choice(content: Content) -> str:
    tuning = content["settings"]["tuning"]
    return (
        "`plain` is the stream at its defaults: 16 flows, stale items discarded past a gap of 3, 8 validations side by "
        "side. `chosen` has 6 flows, `reflective` staleness with up to 3 repairs, and one validation at a time:\n\n"
        "    [algorithm]\n    max_in_flight = 6\n\n"
        '    [staleness]\n    policy = "reflective"\n    max_repairs = 3\n\n'
        "    [stages.evaluate]\n    workers = 1\n    max_workers = 1\n\n"
        f"It was chosen on seeds {tuning['seeds'][0]} to {tuning['seeds'][-1]} in the worlds "
        f"{', '.join(tuning['worlds'])} among {len(tuning['tried'])} settings (`python -m bench.quality --tune`), none "
        "of whose seeds is reported here. Why it is better: at equal tokens most of what a stream spends goes into "
        "validations, four fifths of all requests. Validated side by side, candidates that were made from the same "
        "parent each pay for a whole validation and each hold one lesson. One at a time, its requests side by side, "
        "the server is as busy, and a candidate that waited is repaired before its validation: it is then the "
        "best so far with its own lesson added. More flows put more into proposals that are stale before "
        "their turn comes. Racing on a prefix of the validation set came later to lockstep's score: a prefix of 22 "
        "examples misleads too often."
    )


def _number(figure: Content, key: str) -> str:
    if figure[key] is None:
        return "–"
    low, high = figure["ci95"]
    return f"{figure[key]:.2f} ({low:.2f}–{high:.2f})"


def _signed(figure: Content) -> str:
    low, high = figure["ci95"]
    return f"{figure['mean']:+.3f} ({low:+.3f} to {high:+.3f})"


def _most(time: Content) -> str:
    return "never reached" if time["not_reached"] else f"{time['max']:.2f}"


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|" for cells in lines)
