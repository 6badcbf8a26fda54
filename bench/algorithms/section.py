"""The section of the page on this bench: all algorithms at equal tokens."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench._lib.text import Content, bounds, ranged, table, with_interval
from bench.algorithms.figures import summarise

WHAT = """\
{seeds} seeds. **Every run of a group may use the same number of tokens**, counting prompts and replies of all roles. A
run ends when the replies that have come in add up to that number, and what is under way then is dropped. So an
algorithm that asks a model to plan, reflect or describe pays for it with programs that it does not write. Seconds are
*virtual*. They are the time that a simulated server (profile `qwen3-8b-h100`) takes for the calls, without the time
that programs take to run. Lockstep is the published synchronous form where there is one: one step at a time in GEPA,
ACE, Meta-Harness, CSE and ContextEvolve, a batch of ten in Combee, and an epoch of all islands in CodeEvolve. In the
others it is ten programs a step. Failures are programs and harnesses that failed and replies that could not be read.
Scores can be compared only within a problem. They are means with 95 % intervals (bootstrap over seeds, widened for few
values)."""

WORDS = {
    "prompts": """\
*Simulated*: in the world `rules` what a prompt states decides what the answers do. All three algorithms do one task,
{problems}, because this world has no finance questions; ACE is made for playbooks that an agent cites from. GEPA's
stream is the [preset](../how-to/presets.md) `careful`, and not the default. ACE validates every {validate_every}
samples.""",
    "harnesses": """\
The coder is *simulated* and does not learn from what it reads. Every harness is drawn from the same distribution, so
more of them bring a better best one, and nothing else can be seen here. The harnesses are real and run on
Symptom2Disease and AG News.""",
    "programs": """\
The programs are real and run in the sandbox. **The coder that writes them is not real.** It is simulated (world
`code`) and makes small random changes. Plans, diagnoses, lessons, abstracts and guidance are made mechanically from
the programs and scores shown, and can influence the coder only by naming kinds of changes to prefer or avoid. So this
shows what selection and archives achieve, and what the agents of each algorithm cost in tokens. **It can't show what
CSE and ContextEvolve are about**: what plans, memory and abstracts are worth to a model that understands them. A
ranking here would not carry over to such a model. The budget is small, too. For LEVI it is little more than the
opening (seeds and their variants), and for CSE little more than the plans and a few steps.""",
    "efficiency": """\
These are the same searches on one of our efficiency problems. A program is right or it fails. The score of one that is
right is one over its memory-time integral, measured on this machine, as a multiple of the seed program's score in the
same run. Unlike all other scores these change when the command is given again. The best of more measurements is also
higher by chance alone, which favours the search that evaluates most. The machine's load (all programs that wanted a
core, ours among them) was {load:.1f}.""",
}
"""For each group, what its figures mean."""

REAL = """\
*Real*: {model}, {minutes:g} minutes for each run, {seeds} seed{s}; the seed program scores {seed_score:.5f}. A model
as small as this hardly ever writes a program that works. What can be seen is that these searches run on a real server,
what they do with replies that can't be read (each counts as a failure), and how much of the server each keeps busy.
Where the table has one evaluation, it is that of the seed, and no reply had a program in it. Seconds are real. The
ratio is one of seconds per token."""


REAL_COMMAND = """\
    python -m bench.algorithms --server {server} --minutes {minutes:g} --json bench/results/algorithms_vllm_cpu.json"""

RATIO = """\
The ratio is lockstep's seconds per token over the stream's, as the median over all seeds and problems. As both spend
the same budget, it is also the ratio of the times to the same number of tokens, except for the last reply. Searches
whose lockstep is ten wide wait for the slowest of ten, and those that go one step at a time gain the most. What this
does to the scores is in the column of differences above."""

NAMED = 2
"""The answer names the comparisons in which streams score lower if there are at most this many; the page has them all.
"""
NEAR = 0.001
"""An interval that ends within this distance of 0 does not show that scores differ."""
MODES = ("sync", "stream")
WHAT_ELSE = ("evaluations", "failures", "tokens", "seconds")


def answer(content: Content) -> str:
    """How much faster the streams are than lockstep, from the smallest ratio to the largest, and what that does to the
    scores.
    """
    content = _summarised(content)
    found = sorted(content["stream_vs_sync"].items(), key=lambda each: float(each[1]))
    if not content["simulated"]:
        ratios = ", ".join(f"{ratio:.1f} (`{name}`)" for name, ratio in found)
        runs = content["settings"]["seeds"]
        return (
            f"by tokens a second, {ratios} times as fast;{_unread(content)} {runs} run{'s' if runs > 1 else ''} of each"
        )
    low, *_, high = sorted(content["figures"], key=lambda each: float(each["ratio"]["median"]))
    lower, higher = _apart(content)
    named = f" ({', '.join(_difference(each) for each in lower)})" if 0 < len(lower) <= NAMED else ""
    return (
        f"{median(ratio for _, ratio in found):.1f} times as fast in the median, by problem {_ratio(low)} to "
        f"{_ratio(high)}; of {len(_differing(content))} scores that differ at all streams have {len(lower)} clearly "
        f"lower{named} and {len(higher)} higher{_of_measured(content, higher)}"
    )


def _ratio(each: Content) -> str:
    return f"{each['ratio']['median']:.1f} (`{each['algorithm']}`)"


def _differing(content: Content) -> list[Content]:
    """The comparisons in which stream and lockstep differ with any seed. Without feedback, for example, they can't."""
    return [each for each in content["figures"] if {*bounds(each["stream_less_sync"])} != {0.0}]


def _summarised(content: Content) -> Content:
    """The content together with the figures of its rows."""
    return {**content, **summarise(content["rows"])}


def _of_measured(content: Content, higher: Sequence[Content]) -> str:
    """How many of the comparisons that streams win are on measured problems, where more evaluations help."""
    groups = content["settings"]["groups"].values()
    measured = {problem for group in groups if "load" in group for problem in group["problems"]}
    count = sum(each["problem"] in measured for each in higher)
    return f" ({count} where evaluating more helps)" if count else ""


def _unread(content: Content) -> str:
    """A clause that says that nothing but the seed was evaluated, if that is so."""
    evaluated = max(each[mode]["evaluations"] for each in content["figures"] for mode in MODES)
    return " no reply had a program in it;" if evaluated <= 1 else ""


def _apart(content: Content) -> tuple[list[Content], list[Content]]:
    """The comparisons whose whole interval says that the stream's score is lower, and those whose interval says that it
    is higher.
    """
    found = [(*bounds(each["stream_less_sync"]), each) for each in content["figures"]]
    return [each for _, high, each in found if high < -NEAR], [each for low, _, each in found if low > NEAR]


def _difference(each: Content) -> str:
    return f"`{each['algorithm']}` {each['stream_less_sync']['value']:+.3f}"


def _scores_apart(content: Content) -> str:
    differing = _differing(content)
    lower, higher = (
        ", ".join(f"{_difference(each)} on `{each['problem']}`" for each in found) or "none"
        for found in _apart(content)
    )
    return f"""\
With as many tokens the stream's best score is clearly lower than lockstep's (the whole interval is more than
{NEAR:g} below 0) here: {lower}; and clearly higher here: {higher}. Where nothing differs, about one interval in
twenty leaves out 0 by chance: {len(differing) / 20:.1f} of the {len(differing)} in which anything differs. In the other
{len(content["figures"]) - len(differing)} both modes end with equal scores with every seed; they tell nothing. Few
tokens tell little, too: a search for programs makes {_evaluations(content)} evaluations with them."""


def _evaluations(content: Content) -> str:
    """How many evaluations the searches for programs make, from the fewest to the most."""
    problems = content["settings"]["groups"].get("programs", {}).get("problems", ())
    found = [each[mode]["evaluations"] for each in content["figures"] for mode in MODES if each["problem"] in problems]
    return f"{min(found):.0f} to {max(found):.0f}" if found else "few"


def section(content: Content) -> str:
    """Markdown with its heading."""
    content = _summarised(content)
    return _simulated(content) if content["simulated"] else _real(content)


def _simulated(content: Content) -> str:
    settings = content["settings"]
    parts = [
        "# All algorithms at equal tokens",
        "    python -m bench.algorithms --json bench/results/algorithms.json",
        WHAT.format(**settings),
        *(part for name in WORDS if name in settings["groups"] for part in _group(name, content)),
        "## The stream compared with lockstep",
        RATIO,
        _scores_apart(content),
        table(("algorithm", "ratio"), [(name, f"{x:.2f}") for name, x in content["stream_vs_sync"].items()]),
    ]
    return "\n\n".join(parts)


def _group(name: str, content: Content) -> list[str]:
    group = content["settings"]["groups"][name]
    begun = [f"{problem} {score:.5f}" for problem, score in group["seed_scores"].items() if score is not None]
    from_what = f" What evolution begins from scores: {', '.join(begun)}." if begun else ""
    words = WORDS[name].format(problems=", ".join(f"`{each}`" for each in group["problems"]), **_more(group))
    found = [each for each in content["figures"] if each["problem"] in group["problems"]]
    compared = [each for each in content["beside_baseline"] if each["problem"] in group["problems"]]
    parts = [
        f"## {name.capitalize()}",
        f"{words}\n\n{group['tokens']:,} tokens for each run.{from_what}",
        _scores(found),
    ]
    if compared:
        other = compared[0]["other"]
        parts += [
            f"These are the best scores of the streams less those of `{other}` with the same seeds:",
            _differences(compared),
        ]
    return parts


def _more(group: Content) -> Content:
    """Further values that the text of a group mentions."""
    found = {name: group[name] for name in ("load",) if name in group}
    if "ace" in group["algorithms"]:
        found["validate_every"] = group["algorithms"]["ace"]["stream"]["algorithm"]["validate_every"]
    return found


def _real(content: Content) -> str:
    settings = content["settings"]
    return "\n\n".join(
        [
            "# Algorithms with a real model",
            REAL_COMMAND.format(**settings),
            REAL.format(**settings, s="" if settings["seeds"] == 1 else "s"),
            _scores(content["figures"]),
        ]
    )


def _scores(found: Sequence[Content]) -> str:
    rows = [
        (
            each["problem"],
            each["algorithm"],
            *(with_interval(each[mode]["best"]) for mode in MODES),
            with_interval(each["stream_less_sync"], signed=True),
            *(" / ".join(f"{each[mode][what]:,.0f}" for mode in MODES) for what in WHAT_ELSE),
            ranged(each["ratio"], 2),
        )
        for each in found
    ]
    header = ("problem", "algorithm", "best, lockstep", "best, stream", "stream − lockstep")
    return table(
        (*header, *(f"{what}, lockstep / stream" for what in WHAT_ELSE), "ratio of seconds (median, range)"), rows
    )


def _differences(found: Sequence[Content]) -> str:
    rows = [
        (
            each["problem"],
            each["algorithm"],
            with_interval(each["difference"], signed=True),
            f"{each['better']} / {each['equal']} / {each['worse']}",
        )
        for each in found
    ]
    return table(("problem", "algorithm", "difference", "better / equal / worse"), rows)
