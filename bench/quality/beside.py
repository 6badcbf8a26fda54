"""The pages on what could be taken instead of the default, and on the default without each of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench._lib.text import Content, bounds, table
from bench.quality.section import NOT_REACHED, number, share_of, signed

OTHERS_COMMAND = "quality --others"
WITHOUT_COMMAND = "quality --without"
AT_THE_END = "winner by validation alone"
"""The part that does its work when a run ends, so that without it nothing differs before."""
EARLY = "10"
"""The minutes of lockstep by whose tokens it is said who is ahead early."""


def others_answer(content: Content) -> str:
    clear = _clearly_sooner(content)
    combee = [name for name in _by_method(content) if name.startswith("combee")]
    none = ", none with Combee" if combee and not clear.keys() & {*combee} else ""
    ahead = [f"*{name}*" for name in _ahead_early(content)]
    early = f"; at the tokens of the first {EARLY} minutes {', '.join(ahead)} is ahead in every world" if ahead else ""
    return (
        f"sooner, in the median, in {_sooner(content)} comparisons ({len(content['settings']['seeds'])} seeds; clearly "
        f"in {sum(map(len, clear.values()))}{none}){early}"
    )


def beside_presets(content: Content) -> str:
    """What is said of the default where users choose a preset."""
    sooner = [method for method, pairs in _by_method(content).items() if any(_time(a) < _time(b) for a, b in pairs)]
    return (
        "Beside lockstep, Combee and other presets in [simulated worlds](../benchmarks/quality_others.md) the default "
        f"reaches the score of synchronous GEPA {others_answer(content)}. These reach it sooner than the default in at "
        f"least one world: {', '.join(f'*{method}*' for method in sooner) or 'none'}."
    )


def without_answer(content: Content) -> str:
    last = _last_moment(content)
    parts = {name: pairs for name, pairs in _by_method(content).items() if name != AT_THE_END}
    losses = {name: fmean(_loss(pair, last) for pair in pairs) for name, pairs in parts.items()}
    clear = [name for name, pairs in parts.items() if _clearly_lost(pairs, last)]
    rest = [loss for name, loss in losses.items() if name not in clear]
    said = ", ".join(f"{losses[name]:.3f} with *{name}*" for name in clear) or "nothing clearly"
    seeds = len(content["settings"]["seeds"])
    if rest:
        said += f"; with the others {min(rest):.3f} to {max(rest):.3f}, which {seeds} seeds can't tell from chance"
    return f"of held-out score at equal tokens {said}"


def others_section(content: Content) -> str:
    """Markdown, with its heading."""
    return _section(
        content, "# The default beside what could be taken instead", OTHERS_COMMAND, OTHERS, _not_sooner(content)
    )


def without_section(content: Content) -> str:
    """Markdown, with its heading."""
    return _section(content, "# The default without each of its parts", WITHOUT_COMMAND, WITHOUT, _losses(content))


OTHERS = """\
- *Lockstep, 4 or 16 side by side* is our own loop, and not gepa itself, with what gepa calls PxN (2x2 and 4x4), as
  published: so many proposals begin at once, and the next ones when all have ended.
- *Combee* makes one proposal of many reflections; *combee 10* and *combee 40* are its published form in lockstep.
- A *preset* is [a set of defaults under a name](../how-to/presets.md), and `default` is what a configuration gets
  that names none."""
WITHOUT = """\
Each row is the default with one part switched off, or with a fixed number of flows in place of the number that it finds
by itself. The winner is chosen among the best few when a run ends. What a run has before that is the same with and
without it, so the row on the winner can't differ here."""


MEASURED = """\
*Simulated* ({profile}, world `rules`): {seeds} seeds in each of these worlds. Everything is measured as on
[the page on quality](quality.md): beside synchronous GEPA that makes one proposal at a time for {minutes} virtual
minutes, with the same seeds and rows. Times are over its own, and {unreached} stands for a score that was not reached
in twice its time."""


def _section(content: Content, heading: str, command: str, about: str, finding: str) -> str:
    settings = content["settings"]
    given = f"--worlds {' '.join(settings['worlds'])} --seeds {len(settings['seeds'])}"
    worlds = "\n".join(f"- `{name}`: {world['about']}" for name, world in settings["worlds"].items())
    name = command.rpartition("--")[2]
    return "\n\n".join(
        (
            heading,
            f"    python -m bench.{command} {given} --json bench/results/quality_{name}.json",
            MEASURED.format(
                profile=settings["profile"],
                seeds=len(settings["seeds"]),
                minutes=f"{settings['minutes']:.0f}",
                unreached=f"{NOT_REACHED:g}",
            ),
            worlds,
            about,
            _table(content),
            finding,
        )
    )


def _table(content: Content) -> str:
    moments = list(content["rows"][0]["by_minutes_of_sync"])
    header = ("world", "", "time to lockstep's held-out score", *(f"equal tokens, {moment} min" for moment in moments))
    rows = (
        (
            row["world"],
            row["method"],
            number(row["time_to_sync_held_out"], share_of),
            *(signed(row["by_minutes_of_sync"][moment]["held_out"]) for moment in moments),
        )
        for row in sorted(content["rows"], key=lambda row: list(content["settings"]["worlds"]).index(row["world"]))
    )
    return table(header, rows)


def _by_method(content: Content) -> Mapping[str, Sequence[tuple[Content, Content]]]:
    """For each method but the default: its row and that of the default, world by world."""
    default = {row["world"]: row for row in content["rows"] if row["method"] == content["method"]}
    found: dict[str, list[tuple[Content, Content]]] = {}
    for row in content["rows"]:
        if row["method"] != content["method"]:
            found.setdefault(row["method"], []).append((row, default[row["world"]]))
    return found


def _time(row: Content) -> float:
    median: float = row["time_to_sync_held_out"]["median"]
    return median


def _sooner(content: Content) -> str:
    pairs = [pair for pairs in _by_method(content).values() for pair in pairs]
    return f"{sum(_time(default) < _time(other) for other, default in pairs)} of {len(pairs)}"


def _apart(lower: Content, higher: Content) -> bool:
    """Whether one interval lies below another."""
    return bounds(lower)[1] < bounds(higher)[0]


def _clearly_sooner(content: Content) -> Mapping[str, Sequence[str]]:
    """For each method that the default is clearly sooner than somewhere: the worlds where the intervals are apart."""
    key = "time_to_sync_held_out"
    worlds = {
        method: [other["world"] for other, default in pairs if _apart(default[key], other[key])]
        for method, pairs in _by_method(content).items()
    }
    return {method: found for method, found in worlds.items() if found}


def _ahead_early(content: Content) -> list[str]:
    """The methods whose held-out score at the tokens of lockstep's first minutes is above the default's in every
    world.
    """
    if EARLY not in content["rows"][0]["by_minutes_of_sync"]:
        return []
    return [method for method, pairs in _by_method(content).items() if all(_loss(pair, EARLY) < 0 for pair in pairs)]


def _clearly_lost(pairs: Sequence[tuple[Content, Content]], moment: str) -> list[str]:
    """The worlds in which the interval of the score without the part lies below the default's."""
    return [
        other["world"]
        for other, default in pairs
        if _apart(*(row["by_minutes_of_sync"][moment]["held_out"] for row in (other, default)))
    ]


def _not_sooner(content: Content) -> str:
    return f"{_medians(content)}\n\n{_how_clearly(content)}"


def _how_clearly(content: Content) -> str:
    """What so few seeds can tell, and who is ahead early."""
    clearly = "; ".join(f"*{method}* ({', '.join(worlds)})" for method, worlds in _clearly_sooner(content).items())
    seeds, early = len(content["settings"]["seeds"]), _ahead_early(content)
    said = (
        f"With {seeds} seeds most of these times can't be told apart. The interval of the default's time lies below "
        f"that of {clearly or 'none'}; with all others the intervals overlap."
    )
    if not early:
        return said
    return (
        f"{said}\n\nAt the tokens that lockstep spends in its first {EARLY} minutes these have a higher held-out score "
        f"than the default in every world: {', '.join(f'*{name}*' for name in early)}."
    )


def _medians(content: Content) -> str:
    lines = [
        f"- `{other['world']}`: {_time(other):.2f} for *{method}*, {_time(default):.2f} for the default."
        for method, pairs in _by_method(content).items()
        for other, default in pairs
        if _time(other) <= _time(default)
    ]
    if not lines:
        return "The default comes to lockstep's held-out score sooner than each of them in every world."
    return "The default is not sooner, in the median, here:\n\n" + "\n".join(lines)


def _last_moment(content: Content) -> str:
    *_, last = content["rows"][0]["by_minutes_of_sync"]
    return str(last)


def _loss(pair: tuple[Content, Content], moment: str) -> float:
    """What the held-out score at equal tokens loses when a part is switched off."""
    other, default = (row["by_minutes_of_sync"][moment]["held_out"]["mean"] for row in pair)
    loss: float = default - other
    return loss


def _losses(content: Content) -> str:
    moments = list(content["rows"][0]["by_minutes_of_sync"])
    rows = (
        (
            method,
            f"{fmean(_time(other) for other, _ in pairs):.2f} ({fmean(_time(default) for _, default in pairs):.2f})",
            *(f"{fmean(_loss(pair, moment) for pair in pairs):+.3f}" for moment in moments),
            f"{len(_clearly_lost(pairs, moments[-1]))} of {len(pairs)}",
        )
        for method, pairs in _by_method(content).items()
    )
    header = (
        "switched off",
        "time to lockstep's held-out score (with it)",
        *(f"lost at {moment} min" for moment in moments),
        f"clearly at {moments[-1]} min",
    )
    return (
        "Over all these worlds, what is lost of the held-out score at equal tokens when a part is switched off (means "
        "of the table above; below zero the default would be better without it). *Clearly* are the worlds in which "
        "the interval without the part lies below the default's; where there is none, so few seeds can't tell the loss "
        f"from chance:\n\n{table(header, rows)}"
    )
