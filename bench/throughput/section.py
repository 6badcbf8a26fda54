"""The section on throughput, simulated or on a real server."""

from __future__ import annotations

from collections.abc import Sequence

import tomli_w

from bench._lib.text import Content, between, percent, table
from bench._lib.time_to_score import Rows, time_to_score
from bench.throughput.comparisons import COMPARISONS, ON_ONE_CLOCK, TOKENS, as_interval
from bench.throughput.goals import (
    by_workload,
    goals,
    met,
    places,
    quotient,
    range_of_medians,
    score_name,
    with_held_out,
)
from bench.throughput.labels import LABELS, SETTINGS
from bench.throughput.lengths import by_length
from bench.throughput.losses import losses
from bench.throughput.notes import more_of_base, notes, repeats_of_real
from bench.throughput.rows import BASE, MERGING_PEER, beside, over_estimated_pxn
from bench.throughput.tables import beside_gepa, best_scores, clocks, on_the_way, single_workloads, times_to_scores
from bench.throughput.waiting import waiting
from bench.throughput.windows import short, windows

COLUMNS = {
    "proposals": ("proposals", "{:.0f}"),
    "proposals_per_min": ("proposals/min", "{:.2f}"),
    "validations_per_min": ("whole validations/min", "{:.2f}"),
    "stopped_per_min": ("stopped/min", "{:.2f}"),
    "accepted_per_min": ("accepted/min", "{:.2f}"),
    "output_tokens_per_s": ("output tokens/s", "{:.0f}"),
    "mean_in_flight": ("in flight, mean", "{:.1f}"),
    "median_in_flight": ("median", "{:.0f}"),
    "idle_share": ("time with <= 1", "{:.0%}"),
    "tokens_per_accepted": ("tokens per accepted", "{:,.0f}"),
    "requests_per_proposal": ("requests per proposal", "{:.0f}"),
    "best_score": ("best score", "{:.2f}"),
    "client_cpu_s": ("client CPU s", "{:.1f}"),
    "held_up_share": ("time that the server waited for a core", "{:.1%}"),
}
Row = Content


def answer(content: Content) -> str:
    """How soon the stream reaches synchronous gepa's last score, and its proposals divided by gepa's."""
    beside = _gains(content, "stream_vs_gepa_pxn", "times its best width's")
    if content["simulated"]:
        more = _gains(content, f"stream_vs_{BASE}", "times gepa's proposals")
        clock = _gains(content, ON_ONE_CLOCK, "times our lockstep's")
        return "; ".join([_soon(content), *_peer(content), *more, *clock, *beside, *_goals_missed(content)])
    return "; ".join([on_each(content), *beside, soon_on_real(content)])


def soon_on_real(content: Content) -> str:
    """How soon the defaults have gepa's last score on a real server, or that it can't be told."""
    (rows,) = places(content).values()
    timed = time_to_score(rows, "stream", [BASE])
    if timed.pairs >= LEAST_TIMED:
        return _soon(content)
    found = {name: each for name, each in by_workload(rows, "stream").items() if each.median is not None}
    if not found:
        return "how soon it has gepa's last score can't be told"
    times = ", ".join(f"{quotient(each.median or 0.0)} (`{name}`)" for name, each in found.items())
    pairs = f"{timed.pairs} pair{'' if timed.pairs == 1 else 's'} of runs"
    return f"gepa's last {score_name(rows)} after {times} of its time, which may be chance in {pairs}"


LEAST_TIMED = 5
"""The fewest pairs of runs on a real server that can tell how soon a score is reached."""


def _goals_missed(content: Content) -> Sequence[str]:
    found = met(content).values()
    missed = len(found) - sum(found)
    return [f"{'all' if missed == len(found) else f'{missed} of'} {len(found)} goals missed"] if missed else []


def _peer(content: Content) -> Sequence[str]:
    """How soon agentdescent with its merging has that score, on each server."""
    found = [range_of_medians(by_workload(rows, MERGING_PEER).values()) for rows in places(content).values()]
    return [f"agentdescent with merging after {', '.join(found)}"] if all(found) else []


def _gains(content: Content, name: str, said: str) -> Sequence[str]:
    """A comparison's means on the servers that have it, followed by what they are of, ``said``."""
    found = [each for rows in places(content).values() if (each := COMPARISONS[name].found(rows)) is not None]
    return [f"{' and '.join(f'{each.mean:.1f}' for each in found)} {said}"] if found else []


def _soon(content: Content) -> str:
    """The range of the workloads' medians, and how many runs don't reach every score."""
    medians, missing, of = [], [], []
    for server, rows in places(content).items():
        if found := range_of_medians(by_workload(rows, "stream").values()):
            timed = time_to_score(rows, "stream", [BASE])
            medians.append(f"{found} (`{server}`)")
            missing.append(f"{len(timed.by_run) - timed.sure}")
            of.append(f"{len(timed.by_run)}")
    if not medians:
        return "no run tells how soon"
    counts = " and ".join(dict.fromkeys(of))
    told = f"after {', '.join(medians)} of its time (medians{_kept(content)})"
    return f"{told}; {' and '.join(missing)} of {counts} runs {MISS}"


def _kept(content: Content) -> str:
    """The same range of medians until the score is kept to the end; empty if held-out scores are not known."""
    found = (by_workload(rows, "stream", kept=True).values() for rows in with_held_out(content).values())
    kept = ", ".join(map(range_of_medians, found))
    return f"; to keep it {kept}" if kept else ""


MISS = "miss a score"


def on_each(content: Content) -> str:
    """The proposals divided by synchronous gepa's on each workload of a real server, and how reliable that is."""
    (rows,) = places(content).values()
    proposals = COMPARISONS[f"stream_vs_{BASE}"].found(rows)
    if proposals is None:
        return "proposals not measured beside gepa's"
    ratios = ", ".join(f"{ratio:.1f} (`{name}`{_in_vain(rows, name)})" for name, ratio in proposals.by_workload.items())
    repeats = repeats_of_real(content)
    tokens = beside(rows, "stream", [BASE], TOKENS)
    assert tokens is not None, "where there are proposals there are tokens"
    written = ", ".join(f"{ratio:.1f}" for ratio in tokens.by_workload.values())
    few = any(method in {BASE, "stream"} for _, method, *_ in short(content, rows))
    runs = f"{repeats} run{'' if repeats == '1' else 's'} of each"
    said = f"{ratios} times the proposals and {written} times the output tokens, {runs}"
    return f"{said}, with too few proposals to rely on" if few else said


def _in_vain(rows: Rows, workload: str) -> str:
    """Says so if none of a workload's proposals was validated, even in part, in the time that was counted."""
    row = rows[workload, "stream"]
    return ", none of them validated" if row["validations_per_min"] + row["stopped_per_min"] == 0 else ""


def section(content: Content) -> str:
    by_place: dict[tuple[str, str], list[Row]] = {}
    for row in content["rows"]:
        by_place.setdefault((row["server"], row["workload"]), []).append(row)
    tables = [_methods(server, workload, rows) for (server, workload), rows in by_place.items()]
    title = "Throughput" if content["simulated"] else f"Throughput on a real server ({content['rows'][0]['server']})"
    parts = (
        f"# {title}",
        f"    {content['command']}",
        PLACES + ALIKE if content["simulated"] else ALIKE,
        beside_gepa(content),
        CHANGED if content["simulated"] else "",
        single_workloads(content),
        losses(content),
        by_length(content),
        on_the_way(content),
        goals(content),
        _measured(content),
        notes(content),
        windows(content),
        _workloads(content),
        figures(content),
        times_to_scores(content),
        best_scores(content),
        *tables,
        clocks(content),
        *_settings(content),
    )
    return "\n\n".join(filter(None, parts))


def _measured(content: Content) -> str:
    settings = content["settings"]
    busiest = max(row["server_cpu_share"] for row in content["rows"])
    process = "server's process" if content["simulated"] else "process that records requests"
    after = _SPED_UP + waiting(places(content)) if content["simulated"] else ""
    return f"""\
{_where(content)} Every method has the same task, prompts and validation examples, minibatches of 3, and at most
{settings["concurrency"]} calls in flight. All repeats of a workload have the same rows, and most rows of `hotpotqa`
are those of `hover`, among them all that validate: these two are no samples of their own. So what other rows would give
is in no range and no interval.
{_runs(content)}
The first fifth of that time is left out of rates. Every request is recorded at the server, where requests in flight,
tokens and proposals are counted. A proposal is an answered reflection; a proposal of Combee's is made of many and
counted where it is made. Other projects' methods get a client that costs less CPU time than their own or ours. The
{process} took at most {percent(busiest)} of one core.{_code(content)}{after}"""


def _code(content: Content) -> str:
    """Which commit's code the runs have, if later commits have not changed it, and where earlier repeats were made."""
    same = _unchanged_since(content)
    if not (earlier := content.get("earlier")):
        return same
    when = " and ".join(f"{each['commit']} on {each['date']}{_only(each)}" for each in earlier)
    machines = {each["machine"]["model"] for each in (*earlier, content)}
    where = "the same kind of processor" if len(machines) == 1 else f"other processors ({', '.join(sorted(machines))})"
    return f"{same} The first repeats were made at {when}, with {where}."


def _unchanged_since(content: Content) -> str:
    """Since which commit the code of the runs is the same; empty if it is the result's own."""
    code = content.get("code", {})
    if not set(code.values()) - {content["commit"]}:
        return ""
    others = "" if code["others"] == code["ours"] else f", for other projects' methods since {code['others']}"
    return f" What decides the runs has not changed since commit {code['ours']}{others}."


def _only(earlier: Content) -> str:
    """Whose methods the earlier repeats are of, if not of all projects."""
    return " (of other projects' methods)" if earlier.get("taken") == ["others"] else ""


def _runs(content: Content) -> str:
    settings = content["settings"]
    length = f"{settings['minutes']:g} minutes of the server's own time"
    repeats, more = repeats_of_real(content), more_of_base(content)
    if not content["simulated"]:
        return f"Each method runs in a process of its own, in random order: {repeats} x {length}{more}."
    return f"""\
Each run lasts {length}, counted from the end of the seed's validation. Other projects' methods
run in processes of their own and in random order (repeats: {repeats}{more}{_side_by_side(settings)}). Their
windows add up to {settings["real_minutes"]:.0f} min of real time. Our own methods run on the virtual clock (repeats:
{settings["virtual_repeats"]}), with the same simulated server in their process; their
CPU time contains the server's."""


def _side_by_side(settings: Content) -> str:
    together = settings.get("real_processes", 1)
    return "" if together == 1 else f", {together} side by side, and those again alone that had to wait for a core"


def _where(content: Content) -> str:
    settings = content["settings"]
    if content["simulated"]:
        speeds = [each for servers in settings["speeds"].values() for each in servers.values()]
        return _SERVERS.format(speeds=between(f"{min(speeds):g}", f"{max(speeds):g}"))
    most = settings["max_tokens"]
    limit = "" if most is None else f", {most} tokens at most, and so are reflections"
    part = settings["text_share"]
    text = "" if part == 1 else f"\nPrompts have {part:g} times the text that they have in the simulated workloads."
    kept = "" if settings["fresh"] else _KEPT
    mix = _SAME_MIX if settings.get("same_mix") else ""
    return f"""\
A real server with the model {settings["model"]}. Answers are as long as the model writes them{limit}.{text}
A reflection that comes without a fenced block is put into one on its way back, for all methods alike, because the model
may be too small to write one.{mix}{kept}"""


_SERVERS = """\
The servers are *simulated*. What runs in real time reaches them over HTTP, at {speeds} times their speed,
by workload and server, TurboGEPA at a third of that. All methods draw their answers alike."""
_SPED_UP = """
A server that is sped up multiplies the time that a client adds to a call, for all methods in real time alike. On the
virtual clock ours add none."""
_SAME_MIX = """
Load without end asks again what `stream` has asked, with all slots full all the time, so both have the same mix of
prompts and answers."""
_KEPT = """
The server is not reset between methods, so a method may find prompts of the one before it in the prefix cache."""


def _workloads(content: Content) -> str:
    rows = [
        (
            name,
            f"{each['calls']}",
            f"{each['prompt_tokens_median']:.0f}",
            _answers(content, name),
            f"{each['validation']}",
            each["source"].replace("prompts", "lengths of prompts", 1),
        )
        for name, each in content["workloads"].items()
    ]
    header = ("workload", "calls per example", "text per prompt", "answers", "validation", "where from")
    meant = "medians" if content["simulated"] else "of texts medians, of answers means of synchronous gepa's"
    chosen = f" {CHOSEN}" if content["simulated"] else ""
    return f"{table(header, rows)}\n\nTexts and answers are counted in tokens ({meant}).{chosen}"


PLACES = "`vllm` is a simulated GPU with vLLM, and `api` a simulated API. "
ALIKE = """\
A workload has the calls per example and the lengths of prompts of the data set it is named after, and none of its rows.
All of them are one made-up task, `house_style`: what differs under these names is how long things take and how many
examples validate."""
CHANGED = """\
**The number of flows was changed after it had been seen here what the defaults did before.** On these workloads, rows
and seeds they took 0.40 (`vllm`) and 0.53 (`api`) of gepa's time on `aime`, and 10 of 40 runs missed a score; then the
rule got more flows where few rows validate (fa0aaa28, 28 November), and the runs of the defaults were made again. The
numbers of the rule were chosen on other rows. That there was something to change was seen on these."""
CHOSEN = """\
The lengths of answers and the numbers of rows for validation were chosen so that synchronous gepa makes about as many
proposals a minute, and takes about as many tokens for each, as FlashEvolve's table 1 reports. gepa itself validates on
300 rows (AIME: 45). With fewer, merging edits saves less."""


def _answers(content: Content, workload: str) -> str:
    lengths = content["workloads"][workload]["output_tokens_median"]
    if lengths is not None:
        return ", ".join(f"{tokens:.0f} ({profile})" for profile, tokens in lengths.items())
    (rows,) = places(content).values()
    gepa = rows.get((workload, BASE))
    if gepa is None or gepa["requests_per_proposal"] is None:
        return "–"
    answered_per_s = gepa["proposals_per_min"] * gepa["requests_per_proposal"] / 60
    return f"{gepa['output_tokens_per_s'] / answered_per_s:.0f}"


def figures(content: Content) -> str:
    """The table of the ratios."""
    found = places(content)
    lines: list[tuple[str, ...]] = []
    for name, comparison in COMPARISONS.items():
        each = [comparison.found(rows) for rows in found.values()]
        if any(each):
            lines.append((comparison.label, *map(as_interval, each)))
        if name == "stream_vs_gepa_pxn":
            estimated = [over_estimated_pxn(rows, "stream") for rows in found.values()]
            if any(estimated):
                lines.append(("the same, PxN 8x8's rate estimated by its tokens", *map(as_interval, estimated)))
    return table(("geometric mean over workloads (95 % interval)", *found), lines)


def _methods(server: str, workload: str, rows: Sequence[Row]) -> str:
    by_method = {row["method"]: row for row in rows}
    lines = [
        (label, *(_cell(by_method[method].get(name), form) for name, (_, form) in COLUMNS.items()))
        for method, label in LABELS.items()
        if method in by_method
    ]
    return table((f"{server}, {workload}", *(name for name, _ in COLUMNS.values())), lines)


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _settings(content: Content) -> Sequence[str]:
    """The settings that were measured; shown only in the section on the simulated servers."""
    if not content["simulated"]:
        return ()
    run = {row["method"] for row in content["rows"]}
    peers = [(label, said) for start, (label, said) in SETTINGS.items() if any(each.startswith(start) for each in run)]
    given = content["configurations"].items()
    shown = (f"`{name}`:\n\n```toml\n{tomli_w.dumps(sections).strip()}\n```" for name, sections in given)
    return (
        table(("method", "its settings, and how it was run"), peers),
        f"The settings of our methods, as they can be put into a config.{_DEFAULTS}",
        *shown,
    )


_DEFAULTS = """\

`stream` is what runs when nothing is set, which is the preset `default`. [A page](../how-to/presets.md) compares the
presets."""
