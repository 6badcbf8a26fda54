"""The pages on what could be taken instead of the default, and on the default without each of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench._lib.text import Content, table
from bench.quality.section import NOT_REACHED, number, signed

OTHERS_COMMAND = "quality --others"
WITHOUT_COMMAND = "quality --without"


def others_answer(content: Content) -> str:
    return f"sooner than each of them, in the median, in {_sooner(content)} of the comparisons by world"


def without_answer(content: Content) -> str:
    last = _last_moment(content)
    losses = {name: fmean(_loss(pair, last) for pair in pairs) for name, pairs in _by_method(content).items()}
    most = max(losses, key=lambda name: losses[name])
    return (
        f"between {min(losses.values()):+.3f} and {losses[most]:+.3f} of held-out score at equal tokens; the most is "
        f"that of *{most}*"
    )


def others_section(content: Content) -> str:
    """Markdown, with its heading."""
    return _section(
        content, "# The default beside what could be taken instead", OTHERS_COMMAND, OTHERS, _not_sooner(content)
    )


def without_section(content: Content) -> str:
    """Markdown, with its heading."""
    return _section(content, "# The default without each of its parts", WITHOUT_COMMAND, WITHOUT, _losses(content))


OTHERS = """\
- *Lockstep, 4 or 16 side by side* is what gepa calls PxN (2x2 and 4x4), as published: so many proposals begin at
  once, and the next ones when all have ended.
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
            number(row["time_to_sync_held_out"], "median"),
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


def _not_sooner(content: Content) -> str:
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
        )
        for method, pairs in _by_method(content).items()
    )
    header = (
        "switched off",
        "time to lockstep's held-out score (with it)",
        *(f"lost at {moment} min" for moment in moments),
    )
    return (
        "Over all these worlds, what is lost of the held-out score at equal tokens when a part is switched off (means "
        "of the table above; below zero the default would be better without it):\n\n" + table(header, rows)
    )
