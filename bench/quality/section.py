"""The section of the page on this bench: score, time and tokens of the stream beside lockstep."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content, table, verdict

GOAL = 0.25
"""The goal: the stream's median time to lockstep's final score, over lockstep's own time to it."""


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
            _luck(content),
            "![best score over time](../bench/results/quality.svg)",
            _choice(content),
        )
    )


def _what(settings: Content) -> str:
    worlds = "\n".join(f"- `{name}`: {world['about']}" for name, world in settings["worlds"].items())
    return WHAT.format(
        profile=settings["profile"],
        seeds=len(settings["seeds"]),
        count=len(settings["worlds"]),
        rows=settings["rows"],
        minutes=f"{settings['minutes']:.0f}",
        worlds=worlds,
    )


WHAT = """\
*Simulated* ({profile}, world `rules`): {seeds} seeds in each of {count} settings, every seed with {rows} rows of
its own, 90 of them for validation. *Lockstep* is synchronous GEPA, the published loop, one proposal at a time, for
{minutes} virtual minutes. It is ours, with the decisions of the gepa package at width 1: that package can't run on
a virtual clock. A stream stops when it has lockstep's final score and has spent lockstep's tokens, prompts
included, so it may end with less than it could; one that has not got that score in twice lockstep's time is given
up and counts as 2. *Validation* is the score by which the best candidate is chosen; *held out* is what that
candidate is worth on rows no selection has seen. Intervals are 95 % (bootstrap over seeds, within worlds).

{worlds}"""


def _headline(content: Content) -> str:
    time, tokens = content["time_to_sync_score"], content["score_at_equal_tokens"]
    method = content["methods"][content["method"]]
    low = tokens["ci95"][0]
    rows = [
        (
            f"`{content['method']}`: time to lockstep's final score, of lockstep's time to it",
            f"median {_number(time, 'median')}, at most {_most(time)}",
            f"median ≤ {GOAL:g}: {verdict(time['median'] <= GOAL)}",
        ),
        (
            "validation score at equal tokens, less lockstep's",
            _signed(tokens),
            f"interval not below 0: {verdict(low >= 0)}",
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
    return table(("", "measured", "goal"), rows)


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
    return table(header, (_row(row, moments) for row in content["rows"])) + (
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
    """A list of the worlds in which the stream is behind, and by how much."""
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
            behind.append(f"{time['not_reached']} of {time['n']} seeds had not got that score in twice the time")
        if behind:
            lines.append(f"- `{row['world']}`, `{row['method']}`: {'; '.join(behind)}.")
    if not lines:
        return "In no world the interval lies below lockstep, and the goal for time is met in each."
    return "Where the stream loses (the whole interval below lockstep), or misses the goal for time:\n\n" + "\n".join(
        lines
    )


def _luck(content: Content) -> str:
    """Why the time to lockstep's very last score is long where worlds are soon solved."""
    rows = [row for row in content["rows"] if row["method"] == content["method"]]
    most = max(rows, key=lambda row: row["sync_final_score"]["mean"] - row["sync_final_held_out"]["mean"])
    return (
        "Why not sooner, as far as can be guessed (untested): lockstep's final score is the highest of all its "
        "validations, so in part luck (in "
        f"`{most['world']}` {most['sync_final_score']['mean']:.3f}, of which {most['sync_final_held_out']['mean']:.3f} "
        "is left on rows held out). In worlds that are soon solved the last step up is a lucky draw, and a stream has "
        "to draw as often; and with one validation at a time it uses little of the server."
    )


def _choice(content: Content) -> str:
    tuning, methods = content["settings"]["tuning"], content["methods"]
    spending = {name: f"{methods[name]['tokens_per_minute_ratio']['mean']:.1f}" for name in methods}
    return CHOICE.format(
        first=tuning["seeds"][0],
        last=tuning["seeds"][-1],
        worlds=", ".join(tuning["worlds"]),
        tried=len(tuning["tried"]),
        spending=" and ".join(f"{times} times (`{name}`)" for name, times in spending.items()),
    )


CHOICE = """\
`plain` is the stream at its defaults: 16 flows, items past a gap of 3 discarded, 8 validations side by side.
`chosen` is

    [algorithm]
    max_in_flight = 6

    [staleness]
    policy = "reflective"
    max_repairs = 3

    [stages.evaluate]
    workers = 1
    max_workers = 1

It was chosen among {tried} settings (`python -m bench.quality --tune` runs them) on seeds {first} and {last} in
the worlds {worlds}, lockstep for 90 minutes; not every setting in every world, as most fell behind at once. None
of these seeds is reported above.

Why it is better: more than four fifths of all tokens go into validations (0.83 in lockstep, 0.86 in `plain`; one
tuning seed, `normal`). Validated side by side, candidates made from the same parent each pay for a whole
validation and each hold one lesson, and `guarded` then discards those that have become stale meanwhile: 46 of 73
validated candidates there. One at a time, a candidate that had to wait is judged first, for the price of one call:
of 97, 46 had nothing to add and 9 contradicted what had been accepted; the rest went on as the best so far with
their own lesson added. Validations then take 0.54 of the tokens. The price is an emptier server: streams spend
tokens at {spending} lockstep's rate. More flows put more into proposals that are stale before their turn comes,
and more validations side by side lose at equal tokens. Racing on a prefix came later to lockstep's score, perhaps
because 22 examples mislead too often (untested). The settings were tried mostly before a change to how the Pareto
archive breaks ties. The reported runs called this bench's functions seed by seed, in processes side by side that
were paused now and then, not through the command above; virtual time does not see that. The commit was entered by
hand: it is the code they ran, not the newest.
"""


def _number(figure: Content, key: str) -> str:
    if figure[key] is None:
        return "–"
    low, high = figure["ci95"]
    return f"{figure[key]:.2f} ({low:.2f}–{high:.2f})"


def _signed(figure: Content) -> str:
    low, high = figure["ci95"]
    return f"{figure['mean']:+.3f} ({low:+.3f} to {high:+.3f})"


def _most(time: Content) -> str:
    return "2 or more" if time["not_reached"] else f"{time['max']:.2f}"
