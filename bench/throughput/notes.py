"""Notes that help to read the figures: rules that differ, windows, and what limits a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean

from bench._lib.methods.presets import ON_REAL_TIME, PRESETS
from bench._lib.methods.process import CEILING, METHODS
from bench._lib.text import Content, between, percent
from bench._lib.time_to_score import Rows, curves, workloads
from bench.throughput.goals import places, runs
from bench.throughput.labels import LABELS
from bench.throughput.measurements import BUSY
from bench.throughput.rows import BASE, ESTIMATED, MERGING_PEER, lacks_rounds, methods, requests_beside
from flowevolve.sim.worlds.rules.params import RulesParams


def notes(content: Content) -> str:
    found = places(content)
    present = {method for rows in found.values() for method in methods(rows)}
    parts = (
        _ACCEPTED,
        _full(found) if "stream" in present else "",
        _MERGES if "stream" in present and content["simulated"] else "",
        _agentdescent(found) if "agentdescent" in present else "",
        _merging(found) if MERGING_PEER in present else "",
        _turbogepa(content, found) if "turbogepa" in present else "",
        _windows(content, found),
        _pxn(found) if ESTIMATED in present and any(map(lacks_rounds, found.values())) else "",
        "" if content["simulated"] else _room(content, found),
        _lockstep(found) if "lockstep" in present and content["simulated"] else "",
        _combee(present),
        _interval(content, present),
    )
    return "\n\n".join(filter(None, parts))


_ACCEPTED = """\
*Accepted* is what entered the pool, and methods differ in what they let in. gepa, our lockstep and `plain` validate
what was better on its minibatch and keep all of it; so does `careful`, after it has repaired edits of a parent that is
no longer the best. `flashevolve` repairs, too, and keeps only what raises the mean score.
`stream` works several edits into one candidate, validates that one, stops
a validation that is losing, and keeps only what raises the mean score. So its counts of validations and of what was
accepted can't be compared with the others'. Validations of all examples and those that were stopped before are counted
apart; files of before 0.2.0 have them in one column."""


def _full(found: Mapping[str, Rows]) -> str:
    """Why the defaults don't fill a server."""
    most = open_flows(found)
    here = f"; in runs of this page {between(f'{min(most):.0f}', f'{max(most):.0f}')} at most" if most else ""
    return f"""\
The goals for proposals and output tokens were set for a stream that keeps its server full. The defaults don't try to:
they open as many flows as a validation costs in edits. Where few rows validate and candidates are accepted they open
more, up to 16 ([the rule](../how-to/presets.md#how-many-flows){here}). A fixed number of 16 was measured elsewhere,
with 90 rows for validation ([the default without each of its parts](quality_without.md)), and not with the fewer rows
of this page. The preset `flashevolve` is for a full server."""


def open_flows(found: Mapping[str, Rows]) -> Sequence[float]:
    """The most proposals that each run of the defaults had under way at a time."""
    return [
        flows for rows in found.values() for name in workloads(rows, "stream") for flows in _flows(rows[name, "stream"])
    ]


_MERGES = """\
The defaults work several edits into one candidate. The simulated world of this page suits that: of up to ten versions
everything is merged, without a loss. On [the page on quality](quality.md) there are worlds in which merges lose and
garble what they merge (`lossy`, `harsh`). How well a real model merges is not measured here."""


def _agentdescent(found: Mapping[str, Rows]) -> str:
    peer, plain = (_requests(found, method) for method in ("agentdescent", "plain"))
    return f"""\
agentdescent follows a rule of its own. Its port of GEPA validates and keeps whatever did *no worse* than its parent,
ties included, and there is no setting to change that. The rule was made for minibatches of one example; here, as in
all methods, minibatches have three and their means are compared. Its requests per proposal are {peer} times
synchronous gepa's, as the mean over workloads. Those of `plain`, which follows gepa's rule and has none of our
mechanisms, are {plain}. Some of this comes from the rule, and some from a window that ends before the validations
begun in it have led to proposals; the two were not measured apart. So the ratio to agentdescent compares with a method
that spends more on each proposal."""


def _merging(found: Mapping[str, Rows]) -> str:
    """What agentdescent's merging is, and how much it validates with it."""
    with_it, without = (_validated(found, method) for method in (MERGING_PEER, "agentdescent"))
    return f"""\
agentdescent can also let a model merge all that came in since it validated last, and validates that one text. This is
off by default; its authors advise it for many workers, and it is also what our defaults gain by. So the row without it
does not show agentdescent at its best. For each proposal it makes {with_it} validations with its merging,
and {without} without. It is asked to merge in our words, as what it merges with is simulated. That merges lose nothing
here is true of it only up to {COMFORTABLE} texts: of more, this world keeps each addition with a chance of
{COMFORTABLE} divided by their number.{sizes(found)} agentdescent's own default, at most {FEWER} texts, was not
tried."""


COMFORTABLE = RulesParams().comfortable_versions
"""Up to how many texts the simulated world merges without overlooking any of their additions."""
FEWER = "six"
"""The default of agentdescent's `max_proposals`."""


def sizes(found: Mapping[str, Rows]) -> str:
    """About how many texts agentdescent merges at a time, where these are more than are merged without a loss, and how
    many proposals ours have under way; empty if it was not run without merging on all of these workloads.
    """
    merged, alone = MERGING_PEER, "agentdescent"
    about = {
        f"`{name}` ({suffix})": _each(rows[name, alone]) / _each(rows[name, merged])
        for suffix, rows in found.items()
        for name in workloads(rows, merged, alone)
        if _each(rows[name, merged])
    }
    ours = open_flows(found)
    if not about or not ours:
        return ""
    many = [f"{size:.0f} on {where}" for where, size in about.items() if size > COMFORTABLE]
    beyond = f", of which {' and '.join(many)} {'is' if len(many) == 1 else 'are'} beyond that" if many else ""
    return f"""
How many it merged at a time was not recorded. If as large a share of its proposals passes the minibatch as without
merging, it was about {min(about.values()):.0f} to {max(about.values()):.0f}, by workload and server{beyond}. `stream`
had at most {max(ours):.0f} proposals under way at a time."""


def _flows(row: Content) -> Sequence[float]:
    flows: Sequence[float] = row.get("values", {}).get("flows", ())
    return flows


def _each(row: Content) -> float:
    """Validations per proposal."""
    return float(row["validations_per_min"] / row["proposals_per_min"])


def _turbogepa(content: Content, found: Mapping[str, Rows]) -> str:
    """How TurboGEPA's use of a single set of examples may affect its scores."""
    rows = [rows[name, "turbogepa"] for rows in found.values() for name in workloads(rows, "turbogepa")]
    sizes = [each["validation"] for each in content["workloads"].values()]
    scores = {"on these": [row["best_score"] for row in rows]}
    if all(row.get("held_out") for row in rows):
        scores["on rows held out"] = [fmean(run[-1][1] for run in curves(row)) for row in rows]
    told = " and ".join(f"{min(each):.2f} to {max(each):.2f} {where}" for where, each in scores.items())
    return f"""\
TurboGEPA knows one set of examples. Here it is the validation rows, {between(min(sizes), max(sizes))} by workload, so
it reflects on those, too, and never sees the training rows that all others have. Its best prompts score {told}. So its
times to a score may be due to this setup.{_busy_clients(rows)}"""


def _busy_clients(rows: Sequence[Content]) -> str:
    """In how many runs the client used so much of a core that figures count as too low."""
    shares = [share for row in rows for share in row.get("values", {}).get("client_cpu_share", ())]
    busy = sum(share > BUSY for share in shares)
    if not busy:
        return ""
    return f""" In {busy} of its
{len(shares)} runs its own process took more than {percent(BUSY)} of a core, with which we call figures too low."""


def _lockstep(found: Mapping[str, Rows]) -> str:
    """How our own lockstep differs from synchronous gepa."""
    ours, theirs = (_validated(found, method) for method in ("lockstep", BASE))
    return f"""\
Our lockstep differs from gepa's loop in one thing. A prompt that a reflection gave back unchanged ends there; gepa runs
it on the minibatch again, and validates it where it does better by chance. So our lockstep validates {ours} of its
proposals, gepa {theirs}. A loop does one thing after another, and what it does doesn't depend on how long that takes.
So a run of our lockstep goes the same way on both servers, as far as it gets: the servers are no two samples of
it.{same_way(found)}"""


def same_way(found: Mapping[str, Rows]) -> str:
    """How many of synchronous gepa's runs have the same sequence of scores on all servers, as far as they get."""
    if len(found) < 2:
        return ""
    told = []
    for name in workloads(next(iter(found.values())), BASE):
        runs = zip(
            *([[worth for _, worth in run] for run in curves(rows[name, BASE])] for rows in found.values()),
            strict=False,
        )
        same = [all(worth[: min(map(len, each))] == min(each, key=len) for worth in each) for each in runs]
        told.append(f"{sum(same)} of {len(same)} on `{name}`")
    return f" Of synchronous gepa's own runs {', '.join(told)} go the same way on both."


def _validated(found: Mapping[str, Rows], method: str) -> str:
    """The share of its proposals that a method validated on all examples, by workload and server."""
    parts = validated(found.values(), method)
    return f"{fmean(parts):.2f} ({min(parts):.2f} to {max(parts):.2f}, by workload and server)"


def validated(found: Iterable[Rows], method: str) -> Sequence[float]:
    """The same as a share for each workload of each server."""
    return [_each(rows[name, method]) for rows in found for name in workloads(rows, method)]


def _requests(found: Mapping[str, Rows], method: str) -> str:
    known = {suffix: requests_beside(rows, method) for suffix, rows in found.items()}
    return ", ".join(f"{value:.2f} ({suffix})" for suffix, value in known.items() if value is not None) or "not known"


def _windows(content: Content, found: Mapping[str, Rows]) -> str:
    none = {
        method: [
            f"{suffix} {name}"
            for suffix, rows in found.items()
            for name in workloads(rows, method)
            if rows[name, method]["validations_per_min"] == 0
        ]
        for method in METHODS
    }
    told = ";\n".join(f"{LABELS[method]} ({', '.join(where)})" for method, where in none.items() if where)
    ended = f"In the time that was counted no validation ended of\n{told}." if told else ""
    return f"{'' if content['simulated'] else _short(content, found)}{ended}".strip()


def _short(content: Content, found: Mapping[str, Rows]) -> str:
    """How long the runs on a real server are, and how much synchronous gepa made in that time."""
    made = [rows[name, BASE]["proposals"] for rows in found.values() for name in workloads(rows, BASE)]
    if not made:
        return ""
    counts = between(f"{min(made):.0f}", f"{max(made):.0f}")
    minutes = content["settings"]["minutes"]
    return f"The runs last {minutes:g} minutes, in which {counts} proposals of synchronous gepa were counted. "


def _pxn(found: Mapping[str, Rows]) -> str:
    rates = [
        (f"{suffix} {name}", {each: rows[name, each]["proposals_per_min"] for each in methods(rows, "gepa_pxn")})
        for suffix, rows in found.items()
        for name in workloads(rows, *methods(rows, "gepa_pxn"))
    ]
    empty = sum(each[ESTIMATED] == 0 for _, each in rates)
    best = sum(max(each.values()) > each[ESTIMATED] for _, each in rates)
    where, most = max(((where, each[ESTIMATED]) for where, each in rates), key=lambda each: each[1])
    of = len(rates)
    return f"""\
In PxN 8x8 a round makes 64 proposals at once, and one round can take longer than a window. On {empty} of {of}
workloads and servers no proposal of 8x8 fell into the time that was counted. Where a whole round did, the count may
flatter it ({most:.2f}/min on {where}). So on {best} of {of} a narrower width counts as "gepa's best PxN width". *PxN
8x8's rate estimated by its tokens* assumes that a proposal of 8x8 costs as many output tokens as one of 4x4. This rate
replaces the count of 8x8, and the best width is chosen again. It is an estimate and not a measurement."""


def _room(content: Content, found: Mapping[str, Rows]) -> str:
    """Whether the server's capacity limits the methods on a real server."""
    (rows,) = found.values()
    names = [
        name
        for name in workloads(rows, BASE, CEILING, "stream")
        if all(rows[name, method]["proposals_per_min"] for method in (BASE, "stream"))
    ]
    if not names:
        return ""
    speeds = [rows[name, CEILING]["output_tokens_per_s"] / rows[name, BASE]["output_tokens_per_s"] for name in names]
    cost = fmean(_tokens(rows, name, "stream") / _tokens(rows, name, BASE) for name in names)
    in_flight = [rows[name, "stream"]["mean_in_flight"] for name in names]
    most = content["settings"]["concurrency"]
    written = [
        rows[name, "stream"]["output_tokens_per_s"] / rows[name, CEILING]["output_tokens_per_s"] for name in names
    ]
    return f"""\
A load without end gets {min(speeds):.1f} to {max(speeds):.1f} times the output tokens/s of synchronous gepa. `stream`
has {min(in_flight):.0f} to {max(in_flight):.0f} of {most} requests in flight, in the mean of a run, and writes
{min(written):.2f} to {max(written):.2f} of the tokens of load without end. So a full server would write
{1 / max(written):.2f} to {1 / min(written):.2f} times as many. A proposal of it takes {cost:.2f} times the output
tokens of one of gepa's (mean over workloads), also because fewer of its edits were validated.
Runs of more than {content["settings"]["minutes"]:g} minutes were not tried. The best scores say little, because the
model is small and they differ by a few answers."""


def _tokens(rows: Rows, name: str, method: str) -> float:
    """Output tokens per proposal, including those of requests in flight."""
    row = rows[name, method]
    return float(60 * row["output_tokens_per_s"] / row["proposals_per_min"])


def _combee(present: set[str]) -> str:
    if not any(method.startswith("combee") for method in present):
        return ""
    return """\
gepa 0.1.4 has hooks for a reflector like Combee's but brings none, so the Combee measured here is ours. Its proposals
can't be counted beside those of the others, because each is made of 10 or 40 reflections. **Its best scores are the
highest by far**, also compared with our streams. The simulated world suits it: what many reflections found can nearly
always be put into one prompt there (`flowevolve/sim/worlds/rules/merger.py`), and of these methods only Combee does so.
How far a real model can do that is not measured here. [Combee](../algorithms/combee.md) runs in the stream, too."""


def repeats_of_real(content: Content) -> str:
    """How many repeats there are of what ran in real time, apart from synchronous gepa."""
    left_out = {BASE, CEILING, *(PRESETS if content["simulated"] else ())}
    found = places(content).values()
    return runs(found, *({*chain.from_iterable(map(methods, found))} - left_out)) or f"{content['settings']['repeats']}"


def more_of_base(content: Content) -> str:
    """How many repeats synchronous gepa has, to follow the number of the others; empty if it has as many."""
    base = runs(places(content).values(), BASE)
    return "" if base in ("", repeats_of_real(content)) else f", and {base} of synchronous gepa"


def _interval(content: Content, present: set[str]) -> str:
    """What intervals account for, and which methods were not run."""
    missing = [LABELS[method] for method in METHODS if method not in present and method not in ON_REAL_TIME]
    left_out = f"\nNot run here: {'; '.join(missing)}." if missing else ""
    repeats, several = repeats_of_real(content), len(content["workloads"])
    more = more_of_base(content)
    ours = f"{content['settings'].get('virtual_repeats', repeats)}" if content["simulated"] else repeats
    drawn = f"{repeats} repeat{'' if repeats == '1' else 's'}"
    if ours != repeats:
        drawn += f" of what ran in real time and {ours} of ours"
    return (
        f"An interval is that of a mean over {several} workloads like these, by a bootstrap that is widened for so few "
        "values as Student's t asks (`bench/_lib/intervals.py`); it is a rough guide, and Student's own intervals "
        f"may be wider. Each workload is one value, of the means of {drawn}{more}.{left_out}"
    )
