"""The section of the page on this bench: gepa and ours at equal metric calls."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from bench._lib.intervals import interval, paired
from bench._lib.stats import Interval
from bench._lib.text import Content, Verdicts, around, table, verdict
from bench.equal_calls.timing import AT_ONCE, CALL_SECONDS, CONCURRENCY, ROW_SECONDS

SCORE = "a score that is surely not below gepa's"
"""What the goal is about."""
LOOKED_AT = (100, 101)
"""Seeds whose results were published (a3d18065) before what the drop-in does was last changed (b37e9fa2)."""
HEADER = (
    "world",
    "",
    "gepa",
    "ours",
    "ours less gepa's",
    "our time over gepa's (median)",
    "our calls of the reflection model over gepa's",
)


def answer(content: Content) -> str:
    groups = by_world(content)
    return (
        f"{signed(lead_of(groups))} in score, {_worlds(groups)}; {_number(_time_of(groups))} of the time with "
        f"{CONCURRENCY} calls at a time{_reflected(groups)}"
    )


def score(content: Content) -> str:
    """How our score compares with gepa's, over all worlds and by world; and what is not equal."""
    groups = by_world(content)
    return f"{_over_all(groups)}; {_worlds(groups)}{_reflected(groups, named=apart(groups)[0])}"


def score_in_short(content: Content) -> str:
    """How our score compares with gepa's over all worlds, and how many more reflections that takes."""
    groups = by_world(content)
    return f"{_over_all(groups)}, for {_times(reflections(groups))} times gepa's reflection calls"


def _over_all(groups: Sequence[Sequence[Any]]) -> str:
    lead = lead_of(groups)
    difference = "clearly above" if lead.low > 0 else "clearly below" if lead.high < 0 else "no clear difference"
    return f"{difference}: {signed(lead)}"


def goals(content: Content) -> Verdicts:
    return {SCORE: lead_of(by_world(content)).low >= 0}


def section(content: Content) -> str:
    settings, pairs, groups = content["settings"], content["pairs"], by_world(content)
    over = max(pair["ours"]["calls"] for pair in pairs) - settings["calls"]
    lead, time, met = lead_of(groups), _time_of(groups), goals(content)
    rows = [
        (group[0]["world"], content["worlds"][group[0]["world"]], _scores(group, "gepa"), _scores(group, "ours"),
         signed(lead_of([group])), _number(_time_of([group])), _times(reflections([group])))
        for group in groups
    ]  # fmt: skip
    return f"""\
# At equal metric calls

    python -m bench.equal_calls --seeds {settings["seeds"]} --json bench/results/equal_calls.json

gepa's own loop and `flowevolve.compat.gepa.optimize`, with its defaults but for `adapter_concurrency={CONCURRENCY}`
(1 by default), get the same adapter and {settings["calls"]} metric calls. Time is real. The model is *simulated*, in
small worlds in which a prompt is a list of rules. A score is that of the best prompt on 200 rows held out, as the mean
over {settings["seeds"]} seeds. Intervals are 95 % (bootstrap over seeds, within worlds, widened for few values). The
drop-in's settings were chosen on other seeds of such worlds.{_looked_at(content)} {_shared(groups)}

{table(HEADER, rows)}

Only calls of the metric are equal. {_unequal(groups)}

Over all worlds the difference in score is {signed(lead)}, drawn over seeds, and {signed(_over_worlds(groups))}, drawn
over worlds. The goal, that the first of these intervals is not below 0, is {verdict(met[SCORE])}.
Ours is {_counts(groups)}. {_by_one_world(groups)}

Ours takes {_number(time)} of gepa's time. {_calls(over)} {_made(groups)}

{_why(groups)}
{_fewer(content)}"""


def _looked_at(content: Content) -> str:
    """Which seeds had been looked at when the drop-in was last changed, and the difference without them."""
    new = [pair for pair in content["pairs"] if pair["seed"] not in LOOKED_AT]
    if not new or len(new) == len(content["pairs"]):
        return ""
    seeds = " and ".join(map(str, LOOKED_AT))
    return f"""
But a first result with seeds {seeds} was published (a3d18065) before it was changed how edits are merged (b37e9fa2).
Without these seeds the difference over all worlds is {signed(lead_of(_grouped(new, content)))}. And what is done with
gepa's own merges was changed (fe9d9c1b) after a try of three such worlds at 600 calls, with seeds 300 to 302, in which
it was 0.11 below gepa."""


def _why(groups: Sequence[Sequence[Any]]) -> str:
    """Where the gain in time comes from, and how much is left if the adapter answers all rows of a call at once."""
    at_once = [group for group in groups if group[0]["world"] == AT_ONCE]
    there = (
        f"in *{AT_ONCE}* ours takes {_number(_time_of(at_once))} of gepa's time"
        if at_once
        else "the gain with such an adapter was not measured, and is probably smaller"
    )
    return f"""\
**The time says what {CONCURRENCY} calls at a time bring, and not what the algorithm does.** gepa makes one proposal and
one call of the adapter at a time. This adapter takes {1000 * CALL_SECONDS:g} ms for a call and
{1000 * ROW_SECONDS:g} ms for each of its rows, one row after the other. Ours makes up to {CONCURRENCY} calls of
the adapter and as many reflections at a time here; by default (`adapter_concurrency=1`) it makes one of each. An
adapter that answers the rows of a call side by side makes gepa's calls shorter, too: {there}."""


def _by_one_world(groups: Sequence[Sequence[Any]]) -> str:
    """The worlds in which our score clearly differs from gepa's, and the mean without the world that gains most."""
    above, below = (", ".join(found) or "none" for found in apart(groups))
    said = f"*Clearly* is with the whole interval on one side of 0: above in {above}, and below in {below}."
    most = max(groups, key=lambda group: lead_of([group]).value)
    others = [group for group in groups if group is not most]
    if not others:
        return said
    return f"{said} Without *{most[0]['world']}*, which gains most, the mean difference is {signed(lead_of(others))}."


def apart(groups: Sequence[Sequence[Any]]) -> tuple[list[str], list[str]]:
    """The worlds where the whole interval of the difference is above 0, so that ours is better, and those where it is
    below.
    """
    leads = {group[0]["world"]: lead_of([group]) for group in groups}
    above = [world for world, lead in leads.items() if lead.low > 0]
    return above, [world for world, lead in leads.items() if lead.high < 0]


def _worlds(groups: Sequence[Sequence[Any]]) -> str:
    """In how many worlds our mean score is below gepa's."""
    below = sum(lead_of([group]).value < 0 for group in groups)
    clearly_above, clearly_below = map(len, apart(groups))
    clearly = f"clearly in {clearly_below or 'none'}; clearly above in {clearly_above or 'none'}"
    return f"below in {below} of {len(groups)} worlds ({clearly})"


def _counts(groups: Sequence[Sequence[Any]]) -> str:
    """The same as `_worlds`, and in how many pairs."""
    pairs = [pair for group in groups for pair in group]
    found = paired(*([pair[of]["score"] for pair in pairs] for of in ("ours", "gepa")))
    return f"{_worlds(groups)} and {found['worse']} of {len(pairs)} pairs (above in {found['better']})"


def _shared(groups: Sequence[Sequence[Any]]) -> str:
    """The worlds that share a baseline, and how often gepa's score is already at its highest there."""
    shared = [worlds for worlds in _baselines(groups) if len(worlds) > 1]
    if not shared:
        return ""
    most = max(pair["gepa"]["score"] for group in groups for pair in group)
    named = []
    for worlds in shared:
        highest = sum(pair["gepa"]["score"] == most for pair in worlds[0])
        names = ", ".join(f"*{group[0]['world']}*" for group in worlds)
        named.append(
            f"{names} (there it has {most:.2f}, its highest score anywhere, on {highest} of {len(worlds[0])} seeds)"
        )
    return (
        f"gepa's runs are the same in {'; and in '.join(named)}, so {len(groups)} worlds are "
        f"{len(_baselines(groups))} baselines. For intervals of scores over several worlds, those that share a "
        "baseline get the same seeds."
    )


def _baselines(groups: Sequence[Sequence[Any]]) -> list[list[Sequence[Any]]]:
    """The worlds, grouped by those in which gepa's runs are the same with all seeds."""
    found: dict[object, list[Sequence[Any]]] = {}
    for group in groups:
        runs = tuple((pair["seed"], *(pair["gepa"][of] for of in ("score", "calls", "candidates"))) for pair in group)
        found.setdefault(runs, []).append(group)
    return list(found.values())


def _fewer(content: Content) -> str:
    """The same comparison with fewer metric calls, if that was measured."""
    if not content.get("fewer"):
        return ""
    rows = []
    for calls, pairs in content["fewer"].items():
        groups = _grouped(pairs, content)
        _, below = apart(groups)
        rows.append(
            (
                calls,
                " and ".join(f"{fmean(pair[of]['calls'] for pair in pairs):.0f}" for of in ("gepa", "ours")),
                signed(lead_of(groups)),
                _number(_time_of(groups)),
                _times(reflections(groups)),
                ", ".join(below) or "none",
            )
        )
    header = ("metric calls", "made by gepa and ours (mean)", *HEADER[-3:], "worlds where ours is clearly below")
    return f"""
The same with fewer metric calls, over all worlds:

{table(header, rows)}"""


def by_world(content: Content) -> list[list[Any]]:
    """The pairs of each world."""
    return _grouped(content["pairs"], content)


def _grouped(pairs: Sequence[Any], content: Content) -> list[list[Any]]:
    return [[pair for pair in pairs if pair["world"] == world] for world in content["worlds"]]


def _calls(over: int) -> str:
    if over > 0:
        return f"Ours went over the limit by up to {over} calls."
    return "Ours never went over the limit. gepa goes over it to finish the iteration that it is in."


def _made(groups: Sequence[Sequence[Any]]) -> str:
    """How many calls of the metric both made, over all worlds and where they differ most."""
    of_worlds = {
        group[0]["world"]: [fmean(pair[of]["calls"] for pair in group) for of in ("gepa", "ours")] for group in groups
    }
    gepa, ours = (fmean(each) for each in zip(*of_worlds.values(), strict=True))
    most = max(of_worlds, key=lambda world: abs(of_worlds[world][0] - of_worlds[world][1]))
    there = " and ".join(f"{calls:.0f}" for calls in of_worlds[most])
    return (
        f"So gepa made {gepa:.0f} in the mean, and ours {ours:.0f} ({there} in *{most}*, where they differ most), for "
        "which neither scores nor times are corrected."
    )


def lead_of(groups: Sequence[Sequence[Any]]) -> Interval:
    """Our score minus gepa's over these worlds. Worlds that share gepa's runs get the same bootstrap seeds."""
    return interval(_leads(groups))


def _over_worlds(groups: Sequence[Sequence[Any]]) -> Interval:
    """The same, but the bootstrap draws baselines instead of seeds, each with all of its worlds."""
    leads, sizes = [fmean(each) for each in _leads(groups)], [len(worlds) for worlds in _baselines(groups)]
    mean = fmean(leads)
    return interval([[mean + lead - mean * size / fmean(sizes) for lead, size in zip(leads, sizes, strict=True)]])


def _leads(groups: Sequence[Sequence[Any]]) -> list[list[float]]:
    """For each baseline, the differences by seed, summed over its worlds, so that all worlds have the same weight."""
    baselines = _baselines(groups)
    share = len(baselines) / len(groups)
    return [
        [
            share * sum(pair["ours"]["score"] - pair["gepa"]["score"] for pair in pairs)
            for pairs in zip(*worlds, strict=True)
        ]
        for worlds in baselines
    ]


def _time_of(groups: Sequence[Sequence[Any]]) -> Interval:
    """The median over these worlds of our time divided by gepa's."""
    return interval(
        [[pair["ours"]["seconds"] / pair["gepa"]["seconds"] for pair in group] for group in groups],
        "median",
        of_ratios=True,
    )


def reflections(groups: Sequence[Sequence[Any]]) -> float | None:
    """Our calls of the model that reflects and merges divided by gepa's, over all pairs; None if not counted."""
    pairs = [pair for group in groups for pair in group]
    if any("reflections" not in pair[of] for pair in pairs for of in ("ours", "gepa")):
        return None
    ours, gepas = (sum(pair[of]["reflections"] for pair in pairs) for of in ("ours", "gepa"))
    return float(ours / gepas)


def _reflected(groups: Sequence[Sequence[Any]], named: Sequence[str] = ()) -> str:
    """The same as a clause, to be appended to another sentence, with the range over worlds and, if there is a single
    world in ``named``, what it is there.
    """
    each = {group[0]["world"]: found for group in groups if (found := reflections([group])) is not None}
    if not each:
        return ""
    there = f"; {each[named[0]]:.1f} in the one where ours is clearly better" if len(named) == 1 else ""
    by_world = f" ({min(each.values()):.1f} to {max(each.values()):.1f} by world{there})" if len(each) > 1 else ""
    return f"; {_times(reflections(groups))}{by_world} times gepa's reflection calls"


def _unequal(groups: Sequence[Sequence[Any]]) -> str:
    """A sentence on the calls of the model that reflects and merges, which nothing limits."""
    each = [found for group in groups if (found := reflections([group])) is not None]
    if not each:
        return "Calls of the model that reflects and merges were not counted; ours may make more of them."
    return (
        f"Of the model that reflects and merges ours makes {_times(reflections(groups))} times gepa's calls, "
        f"{min(each):.1f} to {max(each):.1f} by world, and such a model is often the dearer one."
    )


def _times(share: float | None) -> str:
    return "–" if share is None else f"{share:.1f}"


def _scores(group: Sequence[Any], of: str) -> str:
    return f"{sum(pair[of]['score'] for pair in group) / len(group):.3f}"


def signed(figure: Interval) -> str:
    return around(figure.as_json(), "{:+.3f}".format)


def _number(figure: Interval) -> str:
    return around(figure.as_json(), "{:.2f}".format, "–")
