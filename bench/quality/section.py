"""The section of the page on this bench: score, time and tokens of the stream beside lockstep."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bench._lib.text import Content, Verdicts, around, between, bounds, percent, table, verdict

GOAL, WORST_GOAL = 0.15, 0.5
"""The goals for the median time to lockstep's final held-out score, over lockstep's own: over all shipped worlds, and
in each of them.
"""
NOT_REACHED = 2.0
"""What a seed counts as if it has not reached lockstep's score in twice lockstep's time."""
LEAST = {"5": -0.05}
LEAST_LATER = -0.02
"""The goals for the lower ends of the intervals at equal tokens: `LEAST` by minute of lockstep, and this for all
others.
"""
VALIDATION = 90
"""How many of a seed's rows are for validation."""
CHOSEN_IN, CHOSEN_ON = ("fickle", "harsh", "noisy", "normal"), range(900, 908)
"""The worlds and seeds on which settings of the default were compared."""
CHANGED_AFTER = range(8)
"""The seeds of earlier measurements in all worlds, after which the default was changed."""


def answer(content: Content) -> str:
    return (
        f"{_two(content['headline']['time_median'])} of the time in the median of the shipped worlds; in the median "
        f"seed of each world, harsh ones included, {_worlds(content)}; {_within(content)}"
        f"{_never(content)} runs do not in twice its time"
    )


def by_world(content: Content) -> str:
    """The range of the worlds' medians, and how many runs do not reach the score in twice the time."""
    return f"{_worlds(content)} of its time (medians; {_never(content)} runs not in twice as long)"


def _worlds(content: Content) -> str:
    medians = [found for row in _of_default(content) if (found := row["time_to_sync_held_out"]["median"]) is not None]
    return f"{min(medians):.2f} to {max(medians):.2f}"


def tokens_a_minute(content: Content) -> str:
    """How many times lockstep's tokens a minute the default spends: the mean, and the range over the worlds."""
    means = [row["tokens_per_minute_ratio"]["mean"] for row in _of_default(content)]
    mean = content["methods"][content["method"]]["tokens_per_minute_ratio"]["mean"]
    return f"{mean:.1f} ({min(means):.1f} to {max(means):.1f})"


def tokens_to_score(row: Content) -> float:
    """About how many tokens a method takes to lockstep's last held-out score, over lockstep's own: its median time,
    multiplied by its tokens a minute. Infinite if its median run never gets there.
    """
    time, rate = float(row["time_to_sync_held_out"]["median"]), float(row["tokens_per_minute_ratio"]["mean"])
    return time * rate if time < NOT_REACHED else math.inf


def tokens_by_world(content: Content) -> str:
    """The range of the default's `tokens_to_score` over the worlds. Single worlds where they are more than lockstep's
    are named.
    """
    found = {row["world"]: tokens_to_score(row) for row in _of_default(content)}
    usual = [each for each in found.values() if each <= 1] or list(found.values())
    more = [f"`{world}`: {each:.2f}" for world, each in found.items() if each > max(usual)]
    return tokens_between(usual) + (f" ({', '.join(more)})" if more else "")


def tokens_between(found: Sequence[float]) -> str:
    """The range of `tokens_to_score`."""
    return between(*("never" if math.isinf(each) else f"{each:.2f}" for each in (min(found), max(found))))


def _of_default(content: Content) -> list[Content]:
    """The rows of the method that the headline is about, one for each world."""
    return [row for row in content["rows"] if row["method"] == content["method"]]


def _within(content: Content) -> str:
    """How much time nine in ten single runs take at most, in all worlds; empty if that is not known."""
    most = _time(content).get("quantiles", {}).get("0.9", NOT_REACHED)
    return f"nine in ten runs take at most {most:.2f}, and " if most < NOT_REACHED else ""


def _time(content: Content) -> Content:
    """The default's times over all worlds."""
    time: Content = content["methods"][content["method"]]["time_to_sync_held_out"]
    return time


def _never(content: Content) -> str:
    time = _time(content)
    return f"{time['not_reached']} of {time['n']}"


def goals(content: Content) -> Verdicts:
    """Whether each goal is met. A figure that was not measured counts as met."""
    headline = content["headline"]
    shares = {"time in the median": ("time_median", GOAL), "time in the worst world": ("worst_world", WORST_GOAL)}
    leads = [(end, LEAST.get(moment, LEAST_LATER)) for moment, end in headline["equal_tokens"].items()]
    harsh = headline["harsh_worst"]
    return {
        **{name: headline[key] is None or headline[key] <= most for name, (key, most) in shares.items()},
        "score at equal tokens": all(end is None or end >= least for end, least in leads),
        "score at equal tokens in harsh worlds": harsh is None or harsh >= LEAST_LATER,
    }


def section(content: Content, beside_gepa: str = "", sources: str = "") -> str:
    """Markdown, with its heading. ``beside_gepa`` says how far our lockstep loop is from gepa itself, and ``sources``
    where the gain comes from.
    """
    settings = content["settings"]
    parts = (
        "# Quality",
        "    python -m bench.quality --json bench/results/quality.json --figure bench/results/quality.svg",
        _what(settings, beside_gepa),
        _headline(content),
        sources,
        _table(content),
        _losses(content),
        "![best score over time](../../bench/results/quality.svg)",
    )
    return "\n\n".join(filter(None, parts))


def _what(settings: Content, beside_gepa: str) -> str:
    worlds = "\n".join(f"- `{name}`: {world['about']}" for name, world in settings["worlds"].items())
    return WHAT.format(
        profile=settings["profile"],
        seeds=len(settings["seeds"]),
        count=len(settings["worlds"]),
        rows=settings["rows"],
        validation=VALIDATION,
        minutes=f"{settings['minutes']:.0f}",
        worlds=worlds,
        exact=EXACT.format(precision=precision) if (precision := settings.get("held_out_precision")) else "",
        tuning=_tuning(settings),
        beside_gepa=beside_gepa,
    )


def _tuning(settings: Content) -> str:
    """What the default was chosen on, and whether that includes seeds that are reported."""
    again = sum(seed in (*CHOSEN_ON, *CHANGED_AFTER) for seed in settings["seeds"])
    return TUNING.format(
        worlds=", ".join(f"`{name}`" for name in CHOSEN_IN),
        chosen=f"{CHOSEN_ON[0]} to {CHOSEN_ON[-1]}",
        changed=f"{CHANGED_AFTER[0]} to {CHANGED_AFTER[-1]}",
        reported=f"{again or 'None'} of these seeds {'is' if again <= 1 else 'are'} reported here",
    )


TUNING = """\
**The default was chosen in some of these worlds.** How it screens and how it chooses the winner was compared in
{worlds} with seeds {chosen}. Measurements in all of these worlds with seeds {changed} missed goals. After them it was
changed how a run begins (twice, the second time for `narrow`) and, for `harsh`, how often the best candidate is
measured again and lines are taken out. {reported}. How the other settings were chosen is not recorded. So these figures
say how the default does in worlds of this kind, and nothing of the score that a real model will get."""


WHAT = """\
*Simulated* ({profile}, world `rules`): {seeds} seeds in each of {count} worlds. Every seed has {rows} rows of its
own, of which {validation} are for validation.

- *Lockstep* is synchronous GEPA, the published loop, which makes one proposal at a time. It runs for {minutes} virtual
  minutes. The loop is ours, as the gepa package does not run on our virtual clock. It decides as that does at
  width 1, but for a prompt that comes back unchanged: gepa runs it again and may validate it, ours does
  not.{beside_gepa}
- A *stream* stops when it has lockstep's final score and has also spent as many tokens as lockstep, prompts included.
  So it may end with a lower score than it could have reached. A stream that has not got lockstep's score in twice
  lockstep's time is stopped, and counts as 2.
- *Validation* is the score by which the best candidate is chosen. *Held out* is that candidate's score on rows that
  were never used to choose anything.{exact}
- Cancelled requests are charged in full. Intervals are 95 % (bootstrap over seeds, within worlds, widened for few
  values).
- `default` is what a configuration gets that does not name a preset; `careful` and `plain` are other
  [presets](../how-to/presets.md).

The worlds from `easy` to `narrow` are the *shipped* ones. Those from `lossy` on were made to be hard for merged edits
and are called *harsh* in the table below.

{tuning}

{worlds}"""


EXACT = """ It is the simulated model's expected score: how often it keeps what a prompt says is known,
  and only the rest is estimated from replies. Prompts that say the same get the same score. Up to {precision:g} below a
  score counts as that score in times to it, lockstep's own included, as less can't be told apart. Such a time ends
  when the best candidate is *first* worth that much: one that is chosen after it may be worth less again."""


def _headline(content: Content) -> str:
    headline, method = content["headline"], content["methods"][content["method"]]
    rows = [
        (
            f"`{content['method']}`: time to lockstep's final held-out score over lockstep's own, median of all pairs",
            _plain(headline["time_median"]),
            _goal(headline["time_median"], GOAL, above=False),
        ),
        (
            "the same, median in the worst of the shipped worlds",
            _plain(headline["worst_world"]),
            _goal(headline["worst_world"], WORST_GOAL, above=False),
        ),
        *_shares(content),
        *(
            (
                f"held-out score less lockstep's, at the tokens that lockstep spends in {minutes} minutes: {LOWER}",
                _plain(end),
                _goal(end, LEAST.get(minutes, LEAST_LATER), above=True),
            )
            for minutes, end in headline["equal_tokens"].items()
        ),
        (
            "the same from 10 minutes on, in the worst harsh world",
            _plain(headline["harsh_worst"]),
            _goal(headline["harsh_worst"], LEAST_LATER, above=True),
        ),
        (
            "gain in 30 minutes over lockstep's (the paper's normalised evolution rate)",
            f"median {number(method['evolution_rate'])}",
            "the paper: 2.27, 1.15, 0.88 on three data sets",
        ),
        ("tokens that it spends a minute over lockstep's, mean (worlds)", tokens_a_minute(content), ""),
        ("runs that never have lockstep's final held-out score in twice its time", _never(content), ""),
    ]
    return table(("", "measured", "goal"), rows)


def _shares(content: Content) -> Sequence[tuple[str, ...]]:
    """A row on the times of single runs, if the result has them."""
    quantiles = _time(content).get("quantiles", {})
    said = ", ".join(f"{percent(float(share))} {share_of(ratio)}" for share, ratio in quantiles.items())
    about = "the same in single runs of all worlds, by the share of runs that take no more"
    return [(about, said, "")] if said else []


def _single(time: Content) -> str:
    """The bounds between which eight in ten single runs lie, and how many runs never get there."""
    quantiles = time["quantiles"]
    never = f", {time['not_reached']} never" if time["not_reached"] else ""
    return f"{share_of(quantiles['0.1'])}–{share_of(quantiles['0.9'])}{never}"


def _has_quantiles(content: Content) -> bool:
    """Whether the result has the times of single runs; older ones do not."""
    return "quantiles" in _time(content)


LOWER = "lower end of the interval in the worst shipped world"


def _two(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.2f}"


def _plain(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.3f}"


def _goal(figure: float | None, goal: float, *, above: bool) -> str:
    if figure is None:
        return "not measured"
    return f"{'≥' if above else '≤'} {goal:g}: {verdict(figure >= goal if above else figure <= goal)}"


def _table(content: Content) -> str:
    moments = list(content["rows"][0]["by_minutes_of_sync"])
    header = (
        "world",
        "stream",
        "lockstep's final score",
        "time to it",
        "time to its held-out score",
        *(["single runs, 10 % to 90 %"] if _has_quantiles(content) else []),
        *(f"equal tokens, {moment} min" for moment in moments),
        "proposals/min (lockstep's)",
    )
    rows = (_row(row, moments, single=_has_quantiles(content)) for row in content["rows"])
    return table(header, rows) + (
        "\n\n*Equal tokens, m min* is the held-out score of the stream's best candidate when it had spent as many "
        "tokens as lockstep had by minute m, less the score of lockstep's best candidate at that minute."
    )


def _row(row: Content, moments: Sequence[str], *, single: bool) -> tuple[str, ...]:
    time, rate = row["time_to_sync_score"], row["proposals_per_minute"]
    equal = [signed(row["by_minutes_of_sync"][moment]["held_out"]) for moment in moments]
    return (
        row["world"],
        row["method"],
        f"{row['sync_final_score']['mean']:.3f}",
        f"{number(time, share_of)} (max {_most(time)})",
        number(row["time_to_sync_held_out"], share_of),
        *([_single(row["time_to_sync_held_out"])] if single else []),
        *equal,
        f"{rate['stream']['mean']:.1f} ({rate['sync']['mean']:.1f})",
    )


def _losses(content: Content) -> str:
    """A list of the worlds in which a method is behind, and by how much."""
    lines = []
    for row in content["rows"]:
        behind = [
            f"held-out score at the tokens of lockstep's first {moment} minutes {signed(figures['held_out'])}"
            for moment, figures in row["by_minutes_of_sync"].items()
            if bounds(figures["held_out"])[0] < LEAST.get(moment, LEAST_LATER)
        ]
        time = row["time_to_sync_held_out"]
        if time["median"] > WORST_GOAL:
            behind.append(f"time to lockstep's final held-out score {number(time, share_of)} of lockstep's")
        if time["not_reached"]:
            behind.append(f"{time['not_reached']} of {time['n']} seeds had not got that score in twice the time")
        if behind:
            lines.append(f"- `{row['world']}`, `{row['method']}`: {'; '.join(behind)}.")
    if not lines:
        return "In every world the goals are met."
    return "Where a goal is missed, or a seed never had lockstep's score:\n\n" + "\n".join(lines)


def number(figure: Content, said: Callable[[float], str] = "{:.2f}".format) -> str:
    """A median with its interval."""
    return "–" if figure["median"] is None else around({**figure, "value": figure["median"]}, said, "–")


def share_of(ratio: float) -> str:
    """A time relative to lockstep's, as far as it was measured."""
    return f"{ratio:.2f}" if ratio < NOT_REACHED else f"{NOT_REACHED:g} or more"


def signed(figure: Content) -> str:
    return around({"value": figure["mean"], "ci95": figure["ci95"]}, "{:+.3f}".format)


def _most(time: Content) -> str:
    return "2 or more" if time["not_reached"] else f"{time['max']:.2f}"
