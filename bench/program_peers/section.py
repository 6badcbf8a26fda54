"""The section of the page on this bench: flowevolve beside OpenEvolve, ShinkaEvolve, LEVI and SkyDiscover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median

from bench._lib.stats import spread
from bench._lib.text import Content, number, ranged, table

OURS = "flowevolve"
NEARLY = 0.9
"""A run that takes this share of the time limit even without trouble leaves no time for trouble."""
NAMES: Mapping[str, str] = {
    OURS: "flowevolve",
    "openevolve": "OpenEvolve",
    "shinka": "ShinkaEvolve",
    "shinka_two_cores": "ShinkaEvolve (two cores)",
    "levi": "LEVI",
    "skydiscover": "SkyDiscover",
}
WHAT = """\
*Simulated* coder and server; the systems, their processes and the programs are real. Each system runs itself, by its
own command, in an environment of its own, on the same problems ({problems}). A problem is a program, a function
that scores it and a statement, written by us in the form of each system. They are small, take milliseconds to score,
and are after well-known examples of these systems. The coder makes small random changes to the program that it is shown
and understands nothing ([the simulator](../reference/simulator.md)), so **scores say what selection makes of such
changes, not what a system's prompts, islands or advice are worth to a model that understands them.** It answers every
request anew, whatever seed the request has, and reads each system's prompts for the program and the form that it wants.

The server is the profile `{profile}` at {speed:g} times its speed, so that runs take a minute; what a system itself
takes weighs {speed:g} times as much as beside the real server. Each run has a budget of {calls} of what the system
counts, which is proposals, iterations, generations or evaluations; *calls* and *evaluations* say what it came to.
All were told to have {width} calls in flight. Rates are of the time from the first call to the last evaluation.
Medians and ranges are over all problems and seeds ({seeds} each), or the seeds of one problem."""
NOT_ALONE = """\
**This is a trial run: other work ran on the machine meanwhile, so no time, rate or CPU figure on this page is to be
believed.** Counts and scores are, as far as they don't depend on time. The command above, on a machine that does
nothing else, makes the page anew."""
TROUBLE = """\
On `{problem}`, once. After {kill_at} answers all processes of a run got SIGKILL. It was gone on with in its own way:
`flowevolve resume`; the last checkpoint of OpenEvolve and SkyDiscover, which were told to make one after every
iteration; ShinkaEvolve's own folder; and LEVI's snapshot. (By default OpenEvolve makes a checkpoint after every 100
iterations, and loses all that it did before the first; SkyDiscover after every 10.) *Not killed* is what a run makes
that is left alone. Calls beyond that were paid for twice, as were those open at the kill. Calls that are missing were
never made up for: OpenEvolve and ShinkaEvolve go on after the highest iteration or generation that they have, and those
before it that were under way at the kill are not made again."""
ENDLESS = """\
Likewise, with a limit of {hang_timeout:g} s for an evaluation. (By default it is 300 s with OpenEvolve and with folders
that flowevolve runs, 360 s with SkyDiscover, 60 s with LEVI, and ShinkaEvolve has none.) The program of answer
{endless_at} never ends. *Begun and not ended* counts how often it was tried.
*Longest pause* is the longest time in which no evaluation ended. A run that had not ended by itself {patience:g} s
after its start was ended."""
LIMITS = """\
- ShinkaEvolve allows itself no more jobs than the machine has cores, and no setting changes that: on two cores it has
  one proposal at a time. It was told of 32 cores. *ShinkaEvolve (two cores)* is what it does by itself.
- SkyDiscover 0.1.0 makes its iterations one after the other. It ran with its default search, `topk`; `adaevolve` and
  `evox` ask a model for ideas in words, or for a search strategy, which this coder can't give.
- LEVI starts a process for each evaluation, which imports LEVI and LiteLLM. Most of its CPU time is that.
- ShinkaEvolve's evaluator writes its two files itself. With `run_shinka_eval` each evaluation would import shinka, too.
- Other systems' evaluations are not sandboxed. Ours run in a sandbox, and its CPU time is in the figures.
- flowevolve ran `one_plus_lambda`, which is what `flowevolve run FOLDER` runs by default."""
SCORES = """\
The best score after a quarter, half and all of a run's evaluations, and that of the best program that the system names,
scored by us in our sandbox. Calls and evaluations are sums over the seeds. *Failed* are programs that raise or break a
rule of the problem, of those that were evaluated."""


def answer(content: Content) -> str:
    if not content["settings"]["alone"]:
        problems, seeds = _drawn(content)
        return (
            f"a trial run of {_counted(len(problems), 'problem')} and {_counted(len(seeds), 'seed')}, while others "
            "used the machine; no rate is to be believed yet"
        )
    problems, seeds = _drawn(content)
    everywhere = [(name, runs) for name, runs in _by_system(content) if {run["problem"] for run in runs} == problems]
    rates = ", ".join(
        f"{'our (1+λ)' if name == NAMES[OURS] else name} {_spread(runs, 'evaluations_per_minute')['median']:.0f}"
        for name, runs in everywhere
    )
    return (
        f"evaluations/min at {content['settings']['speed']:g} times the server's speed, where CPU time weighs as much "
        f"more{_limited_by_cores(content)}: {rates}; "
        f"{_higher(content)}, {_counted(len(seeds), 'seed')}"
    )


FULL = 0.8
"""From this share of the cores' time on, a system's CPU time is what limits it."""


def _limited_by_cores(content: Content) -> str:
    """Names the systems whose CPU time fills the machine."""
    most = FULL * content["machine"]["cores"]
    names = [
        name for name, runs in _by_system(content)
        if fmean(run["lives"][0]["cpu"] / run["lives"][0]["seconds"] for run in runs) > most
    ]  # fmt: skip
    return f" (and is what limits {' and '.join(names)})" if names else ""


def _higher(content: Content) -> str:
    """Which systems score higher than ours, and on how many problems."""
    ahead = _scored_higher(content)
    counts = Counter(name for names in ahead.values() for name in names)
    told = ", ".join(f"{name} on {count}" for name, count in counts.most_common()) or "none on any"
    return f"scores above it: {told} of {_counted(len(ahead), 'problem')}"


def section(content: Content) -> str:
    settings = content["settings"]
    problems, seeds = _drawn(content)
    said = {
        **settings,
        "problems": ", ".join(f"`{name}`" for name in sorted(problems)),
        "seeds": len(seeds),
        "problem": settings["problem_with_trouble"],
        "kill_at": settings["calls"] // 2,
    }
    parts = [
        "# Programs beside other systems",
        "    make peers\n    python -m bench.program_peers --json bench/results/program_peers.json",
        *([] if settings["alone"] else [NOT_ALONE]),
        *([settings["note"]] if settings.get("note") else []),
        _worse(content),
        WHAT.format(**said),
        "## Speed",
        _speed(content),
        "## Scores",
        SCORES,
        _scores(content),
        "## A run that is killed half-way",
        TROUBLE.format(**said),
        _killed(content),
        "## A program that never ends",
        ENDLESS.format(**said),
        _endless(content),
        "## What the systems were told",
        table(("system", "version", "what differs from its defaults"), _settings(content)),
        "The server's address and a key that says nothing were told to all.",
        "## What could not be done, and what limits these figures",
        LIMITS,
    ]
    return "\n\n".join(parts)


def _usual(content: Content) -> list[Content]:
    return [trial for trial in content["trials"] if not trial["kill_at"] and not trial["endless_at"]]


def _drawn(content: Content) -> tuple[set[str], set[int]]:
    """The problems and the seeds of the runs without trouble."""
    usual = _usual(content)
    return {trial["problem"] for trial in usual}, {trial["seed"] for trial in usual}


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _by_system(content: Content) -> Iterator[tuple[str, list[Content]]]:
    """Each system's trials without trouble, ours first."""
    for system, name in NAMES.items():
        if found := [trial for trial in _usual(content) if trial["system"] == system]:
            yield name, found


def _spread(trials: Sequence[Content], name: str) -> Mapping[str, float]:
    return spread([trial["lives"][0][name] for trial in trials]).as_json()


def _worse(content: Content) -> str:
    """Where another system has a better median than ours, which readers should know first."""
    found = dict(_by_system(content))
    ours = found.pop(NAMES[OURS])
    measures: Sequence[tuple[str, Callable[[Content], float], str]] = (
        ("evaluations a minute", lambda trial: float(trial["lives"][0]["evaluations_per_minute"]), "more"),
        ("CPU time a call", lambda trial: -float(trial["lives"][0]["cpu_ms_per_call"]), "less"),
        ("time before the first call", lambda trial: -float(trial["lives"][0]["start_up_seconds"]), "less"),
    )
    said: list[str] = []
    for what, measure, word in measures:
        mine = median(map(measure, ours))
        ahead = [name for name, trials in found.items() if median(map(measure, trials)) > mine]
        if ahead:
            said.append(f"{word} {what}: {', '.join(ahead)}")
    said += [
        f"a higher score on `{problem}`: {', '.join(ahead)}"
        for problem, ahead in _scored_higher(content).items()
        if ahead
    ]
    listed = "\n".join(f"- {each}" for each in said)
    return (
        f"Where others are ahead of flowevolve, which ran its plain search (1+λ), in medians:\n\n{listed}"
        if said
        else "No other system is ahead."
    )


def _scored_higher(content: Content) -> Mapping[str, Sequence[str]]:
    """For each problem, the systems whose median score is higher than ours."""
    found = dict(_by_system(content))
    ours = found.pop(NAMES[OURS])
    return {
        problem: [name for name, trials in found.items() if _best(trials, problem) > _best(ours, problem)]
        for problem in sorted({trial["problem"] for trial in ours})
    }


def _best(trials: Sequence[Content], problem: str) -> float:
    scores = [trial["best_rescored"] for trial in trials if trial["problem"] == problem]
    return median([float("-inf") if score is None else score for score in scores] or [float("-inf")])


def _speed(content: Content) -> str:
    header = (
        *("system", "runs", "evaluations/min", "calls in flight", "time with a call open", "CPU ms a call"),
        *("s before the first call", "CPU s of that"),
    )
    rows = []
    for name, trials in _by_system(content):
        rows.append(
            (
                name,
                str(len(trials)),
                ranged(_spread(trials, "evaluations_per_minute"), 0),
                ranged(_spread(trials, "mean_in_flight"), 1),
                f"{ranged(_spread(trials, 'busy_percent'), 0)} %",
                ranged(_spread(trials, "cpu_ms_per_call"), 0),
                ranged(_spread(trials, "start_up_seconds"), 1),
                ranged(_spread(trials, "start_up_cpu"), 1),
            )
        )
    return table(header, rows)


def _scores(content: Content) -> str:
    header = ("problem", "system", "1/4", "1/2", "all", "scored by us", "calls", "evaluations", "failed")
    rows = [
        (problem, name, *_score_cells(of_problem))
        for problem in content["settings"]["problems"]
        for name, trials in _by_system(content)
        if (of_problem := [trial for trial in trials if trial["problem"] == problem])
    ]
    return table(header, rows)


def _score_cells(trials: Sequence[Content]) -> Iterator[str]:
    for part in (0.25, 0.5, 1.0):
        yield ranged(spread([_after(trial["curve"], part) for trial in trials]).as_json(), 3)
    scores = [trial["best_rescored"] for trial in trials if trial["best_rescored"] is not None]
    missing = f"; {len(trials) - len(scores)} without" if len(scores) < len(trials) else ""
    yield (ranged(spread(scores).as_json(), 3) if scores else "–") + missing
    for name in ("calls", "evaluations", "failed"):
        yield str(sum(trial["lives"][0][name] for trial in trials))


def _after(curve: Sequence[float], part: float) -> float:
    return curve[max(1, round(part * len(curve))) - 1] if curve else 0.0


def _killed(content: Content) -> str:
    header = (
        *("system", "calls before", "open at the kill", "calls after", "in all", "not killed"),
        *("evaluations in all", "not killed", "best score", "ended"),
    )
    rows = []
    for name, trial in _troubled(content, "kill_at"):
        before, *later = trial["lives"]
        after: Content = later[0] if later else {"calls": 0, "evaluations": 0, "ended": "before it could be killed"}
        alone = _alone(content, trial)
        rows.append(
            (
                name,
                str(before["calls"]),
                str(before["open_at_end"]),
                str(after["calls"]),
                str(before["calls"] + after["calls"]),
                ", ".join(str(each["calls"]) for each in alone),
                str(before["evaluations"] + after["evaluations"]),
                ", ".join(str(each["evaluations"]) for each in alone),
                _score(trial["best_rescored"]),
                _ended(after["ended"]),
            )
        )
    return table(header, rows)


def _endless(content: Content) -> str:
    header = (
        *("system", "ended", "seconds in all", "without it", "calls", "evaluations", "begun and not ended"),
        *("longest pause, s", "CPU s", "without it", "processes left"),
    )
    rows = []
    for name, trial in _troubled(content, "endless_at"):
        (life,) = trial["lives"]
        alone = _alone(content, trial)
        rows.append(
            (
                name,
                _ended(life["ended"], late=_late(alone, content["settings"]["patience"])),
                f"{life['lasted']:.0f}",
                ", ".join(f"{each['lasted']:.0f}" for each in alone),
                str(life["calls"]),
                str(life["evaluations"]),
                str(life["unended"]),
                f"{life['longest_pause']:.0f}",
                f"{life['cpu']:.0f}",
                ", ".join(f"{each['cpu']:.0f}" for each in alone),
                str(life["left_over"]),
            )
        )
    return table(header, rows)


def _troubled(content: Content, kind: str) -> Iterator[tuple[str, Content]]:
    for system, name in NAMES.items():
        yield from ((name, trial) for trial in content["trials"] if trial["system"] == system and trial[kind])


def _alone(content: Content, troubled: Content) -> list[Content]:
    """The figures of the same system on the same problem and seed, without trouble."""
    same = ("system", "problem", "seed")
    return [trial["lives"][0] for trial in _usual(content) if all(trial[name] == troubled[name] for name in same)]


def _settings(content: Content) -> Iterator[tuple[str, str, str]]:
    for system, told in content["settings"]["systems"].items():
        version = told["version"] or content["versions"].get("flowevolve", "")
        yield NAMES[system], version, "; ".join(told["settings"])


def _score(score: float | None) -> str:
    return "–" if score is None else number(score, digits=3)


def _late(untroubled: Sequence[Content], patience: float) -> bool:
    """Whether a run without trouble takes so long itself that one with trouble was ended too soon to tell anything."""
    return any(each["lasted"] >= NEARLY * patience for each in untroubled)


def _ended(how: str, *, late: bool = False) -> str:
    given_up = "can't be told: it lasts nearly as long without it" if late else "not by itself"
    return {"itself": "by itself", "patience": given_up}.get(how, how)
