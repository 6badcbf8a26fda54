"""The pages on what could be taken instead of the default, and on the default without each of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from bench._lib.text import Content, bounds, table
from bench.quality.section import NOT_REACHED, number, share_of, signed, tokens_a_minute, tokens_to_score

OTHERS_COMMAND = "quality --others"
WITHOUT_COMMAND = "quality --without"
AT_THE_END = "winner by validation alone"
"""The part that takes effect only when a run ends, so that without it nothing differs before."""
PUBLISHED = ("combee 10", "combee 40")
"""The methods that are Combee as published."""
COMBEE = "Combee as published"
KINDS = {"lockstep": "our lockstep", "combee": "our forms of Combee", "preset": "other presets"}
"""The names of kinds of methods, by how the names of their methods begin."""


def others_answer(content: Content) -> str:
    """How often the default reaches the score sooner than each kind of method, and how often for fewer tokens."""
    said = ", ".join(
        f"than {kind} in {_count(pairs, _time)} and {_count(pairs, tokens_to_score)} of {len(pairs)}"
        for kind, pairs in _by_kind(content).items()
    )
    return f"sooner in the median, and for fewer tokens, {said}"


def beside_presets(content: Content) -> str:
    """What is said about the default where users choose a preset: a paragraph, a table, and another paragraph."""
    sooner = [method for method, pairs in _by_method(content).items() if any(_time(a) < _time(b) for a, b in pairs)]
    before = (
        f"In {len(content['settings']['worlds'])} [simulated worlds](../benchmarks/quality_others.md) it was measured "
        "how soon each reaches the last score of our loop with one proposal at a time. In how many comparisons the "
        "default was ahead:"
    )
    after = (
        f"It spends {tokens_a_minute(content)} times the tokens a minute of the loop with one proposal at a time. "
        "These reach the score sooner than the default in at least one world: "
        f"{', '.join(f'*{method}*' for method in sooner) or 'none'}. These reach it for fewer tokens: "
        f"{_cheaper(content) or 'none'}{_ahead_everywhere(content)}."
    )
    return f"{before}\n\n{_kinds(content)}\n\n{after}"


def _kinds(content: Content) -> str:
    """A table of how often the default is ahead of each kind of method."""
    header = (
        "the default beside", "comparisons", "sooner in the median", "clearly sooner", "clearly later", "fewer tokens"
    )  # fmt: skip
    rows = [
        (kind, len(pairs), _count(pairs, _time), *_how_often_apart(pairs), _count(pairs, tokens_to_score))
        for kind, pairs in _by_kind(content).items()
    ]
    return table(header, [tuple(map(str, row)) for row in rows])


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
        said += _before(content, [pairs for name, pairs in parts.items() if name not in clear])
    return f"of held-out score at the tokens of lockstep's {last} minutes {said}"


def _before(content: Content, parts: Sequence[Sequence[tuple[Content, Content]]]) -> str:
    """A clause on what parts lose at the moment before the last, to be appended to what they lose at the last."""
    *_, before, _ = content["rows"][0]["by_minutes_of_sync"]
    losses = [fmean(_loss(pair, before) for pair in pairs) for pairs in parts]
    return f"; at those of {before} minutes {min(losses):+.3f} to {max(losses):+.3f}"


def as_published(content: Content) -> str:
    """How often Combee as published is ahead of the default, and in which worlds it never reaches the score."""
    pairs = _by_kind(content)[COMBEE]
    sooner, cheaper = (
        sum(figure(other) < figure(default) for other, default in pairs) for figure in (_time, tokens_to_score)
    )
    worlds = content["settings"]["worlds"]
    never = [
        name
        for name in worlds
        if all(_time(other) >= NOT_REACHED for other, default in pairs if default["world"] == name)
    ]
    nowhere = f", never there in {', '.join(f'`{name}`' for name in never)}" if never else ""
    return f"is sooner than the defaults in {sooner} of {len(pairs)} comparisons, cheaper in {cheaper}{nowhere}"


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
- *Combee* makes one proposal of many reflections; *combee 10* and *combee 40* are its published form, in
  lockstep; *combee dynamic* and *combee 10, stream* are forms of ours. Where merging loses nothing, as in all of these
  worlds but `harsh`, that suits it and the default alike.
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
    header = (
        "world",
        "",
        "time to lockstep's held-out score",
        "tokens a minute over lockstep's",
        *(f"equal tokens, {moment} min" for moment in moments),
    )
    rows = (
        (
            row["world"],
            row["method"],
            number(row["time_to_sync_held_out"], share_of),
            f"{_rate(row):.1f}",
            *(signed(row["by_minutes_of_sync"][moment]["held_out"]) for moment in moments),
        )
        for row in sorted(content["rows"], key=lambda row: list(content["settings"]["worlds"]).index(row["world"]))
    )
    return table(header, rows)


def _by_method(content: Content) -> Mapping[str, Sequence[tuple[Content, Content]]]:
    """For each method except the default, its row and that of the default, world by world."""
    default = {row["world"]: row for row in content["rows"] if row["method"] == content["method"]}
    found: dict[str, list[tuple[Content, Content]]] = {}
    for row in content["rows"]:
        if row["method"] != content["method"]:
            found.setdefault(row["method"], []).append((row, default[row["world"]]))
    return found


def _time(row: Content) -> float:
    median: float = row["time_to_sync_held_out"]["median"]
    return median


def _rate(row: Content) -> float:
    mean: float = row["tokens_per_minute_ratio"]["mean"]
    return mean


def _by_kind(content: Content) -> Mapping[str, Sequence[tuple[Content, Content]]]:
    """The same, with the methods of each kind together."""
    kinds: dict[str, list[tuple[Content, Content]]] = {}
    for method, pairs in _by_method(content).items():
        kind = method.split()[0].rstrip(",")
        name = COMBEE if method in PUBLISHED else KINDS.get(kind, kind)
        kinds.setdefault(name, []).extend(pairs)
    return kinds


def _count(pairs: Sequence[tuple[Content, Content]], figure: Callable[[Content], float]) -> int:
    """In how many pairs a figure of the default is lower."""
    return sum(figure(default) < figure(other) for other, default in pairs)


def _apart(lower: Content, higher: Content) -> bool:
    """Whether one interval lies below another."""
    return bounds(lower)[1] < bounds(higher)[0]


def _how_often_apart(pairs: Sequence[tuple[Content, Content]]) -> tuple[int, int]:
    """In how many pairs the interval of the default's time lies below the other's, and in how many above."""
    times = [(default["time_to_sync_held_out"], other["time_to_sync_held_out"]) for other, default in pairs]
    return sum(_apart(*each) for each in times), sum(_apart(other, default) for default, other in times)


def _where(content: Content, kind: Callable[[Content, Content], bool]) -> str:
    """For each method, the worlds where ``kind`` holds for the default's time and the method's."""
    key = "time_to_sync_held_out"
    worlds = {
        method: [other["world"] for other, default in pairs if kind(default[key], other[key])]
        for method, pairs in _by_method(content).items()
    }
    return "; ".join(f"*{method}* ({', '.join(found)})" for method, found in worlds.items() if found) or "none"


def _ahead_everywhere(content: Content) -> str:
    """A clause, to be appended, on the methods whose held-out score is above the default's in every world, and at the
    tokens of which minutes it is.
    """
    ahead = {
        method: [at for at in content["rows"][0]["by_minutes_of_sync"] if all(_loss(pair, at) < 0 for pair in pairs)]
        for method, pairs in _by_method(content).items()
    }
    return "".join(
        f"; at the tokens of lockstep's first {' and '.join(moments)} minutes *{method}* is ahead in every world"
        for method, moments in ahead.items()
        if moments
    )


def _cheaper(content: Content) -> str:
    """Which methods reach the score for fewer tokens than the default, and in how many worlds."""
    fewer = {
        method: sum(tokens_to_score(other) < tokens_to_score(default) for other, default in pairs)
        for method, pairs in _by_method(content).items()
    }
    worlds = len(content["settings"]["worlds"])
    return ", ".join(f"*{method}* (in {count} of {worlds} worlds)" for method, count in fewer.items() if count)


def _clearly_lost(pairs: Sequence[tuple[Content, Content]], moment: str) -> list[str]:
    """The worlds in which the interval of the score without the part lies below the default's."""
    return [
        other["world"]
        for other, default in pairs
        if _apart(*(row["by_minutes_of_sync"][moment]["held_out"] for row in (other, default)))
    ]


def _not_sooner(content: Content) -> str:
    return f"{_kinds(content)}\n\n{_medians(content)}\n\n{_how_clearly(content)}"


def _how_clearly(content: Content) -> str:
    """What this number of seeds can tell, and which methods take fewer tokens."""
    sooner, later = _where(content, _apart), _where(content, lambda default, other: _apart(other, default))
    return (
        f"With {len(content['settings']['seeds'])} seeds most of these times can't be told apart. The interval of the "
        f"default's time lies below that of {sooner}. It lies above that of {later}. All other intervals overlap.\n\n"
        "A time is not a cost. By that time and by the tokens a minute, these come to lockstep's score for fewer "
        f"tokens than the default: {_cheaper(content) or 'none'}{_ahead_everywhere(content)}."
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
    """How much of the held-out score at equal tokens is lost when a part is switched off."""
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
