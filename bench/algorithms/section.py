"""The section of the page on this bench: all algorithms at equal tokens."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content, table, with_interval

WHAT = """\
{seeds} seeds. **Every run of a group may use the same number of tokens** (prompts and replies, of all roles): it ends
when the replies that have come in add up to them, and what is under way then is dropped. So an algorithm that asks a
model to plan, reflect or describe pays for that with programs it does not write. Seconds are *virtual*: the time that a
simulated server (profile `qwen3-8b-h100`) takes for the calls; what programs themselves take is not in it. Lockstep is
the published synchronous form where there is one: one step at a time in GEPA, ACE, Meta-Harness, CSE and ContextEvolve,
a batch of ten in Combee, an epoch of all islands in CodeEvolve, and ten programs a step in the others. Failures are
programs and harnesses that failed and replies that could not be read. Scores can be compared inside a problem only;
they are means with 95 % intervals (bootstrap over seeds)."""

WORDS = {
    "prompts": """\
*Simulated*: world `rules`, in which what a prompt states decides what answers do. One task, {problems}, for all three,
though ACE is made for playbooks that an agent cites from: the world knows no finance questions. GEPA's stream is the
one that [the bench of quality](#quality) chose. ACE validates every {validate_every} samples.""",
    "harnesses": """\
*Simulated* coder, which does not learn from what it reads: a harness is a draw from one distribution, so more of them
bring a better best one, and nothing else can be seen. Harnesses are real and run on Symptom2Disease and AG News.""",
    "programs": """\
The programs are real and run in the sandbox; **who writes them is not**: the simulated coder (world `code`) makes small
random changes, and plans, diagnoses, lessons, abstracts and guidance are made mechanically from the programs and scores
shown. They can sway it only by naming kinds of changes to prefer or avoid. So this shows what selection, archives and
the price in tokens of each algorithm's agents come to. **It can't show what CSE and ContextEvolve are about**, what
plans, memory and abstracts are worth to a model that understands them; nor would a ranking here carry over to one. So
few tokens are little more than the opening of LEVI (seeds and their variants) and of CSE (plans, and a few steps).""",
    "efficiency": """\
The same searches on one of our efficiency problems: a program is right or fails, and its score is one over its
memory-time integral, measured here, as a multiple of the seed program's in the same run. These scores, unlike all
others, are not the same when the command is given again; and the best of more measurements is higher by chance alone,
which favours who evaluates most. The machine's load (all programs that wanted a core, ours among them) was
{load:.1f}.""",
}
"""For each group, what its figures mean."""

REAL = """\
*Real*: {model}, {minutes:g} minutes for each run, {seeds} seed{s}; the seed program scores {seed_score:.5f}. So small a
model hardly writes a program that works: what can be seen is that these searches run on a real server, what they do
with replies that can't be read (each is a failure), and how much of the server each keeps busy. With one evaluation,
that of the seed, no reply had a program in it. Seconds are real; the ratio is one of seconds per token."""


REAL_COMMAND = """\
    python -m bench.algorithms --server {server} --minutes {minutes:g} --json bench/results/algorithms_vllm_cpu.json"""

RATIO = """\
Lockstep's seconds per token over the stream's; as both spend the same budget, that is seconds over seconds to the same
number of tokens, but for the last reply. Median over all seeds and problems. Searches whose lockstep is ten wide wait
for the slowest of ten; those that go one step at a time gain most. What that does to scores is the column of
differences above."""

MODES = ("sync", "stream")
WHAT_ELSE = ("evaluations", "failures", "tokens", "seconds")


def section(content: Content) -> str:
    """Markdown with its heading; runs on a real server become a part of the section."""
    return _simulated(content) if content["simulated"] else _real(content)


def _simulated(content: Content) -> str:
    settings = content["settings"]
    parts = [
        "## All algorithms at equal tokens",
        "    python -m bench.algorithms --json bench/results/algorithms.json",
        WHAT.format(**settings),
        *(part for name in WORDS if name in settings["groups"] for part in _group(name, content)),
        "### The stream beside lockstep",
        RATIO,
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
        f"### {name.capitalize()}",
        f"{words}\n\n{group['tokens']:,} tokens for each run.{from_what}",
        _scores(found),
    ]
    if compared:
        other = compared[0]["other"]
        parts += [f"Best scores of the streams less those of `{other}` with the same seeds:", _differences(compared)]
    return parts


def _more(group: Content) -> Content:
    """What else the text of a group says of it."""
    found = {name: group[name] for name in ("load",) if name in group}
    if "ace" in group["algorithms"]:
        found["validate_every"] = group["algorithms"]["ace"]["stream"]["algorithm"]["validate_every"]
    return found


def _real(content: Content) -> str:
    settings = content["settings"]
    return "\n\n".join(
        [
            "### A real model",
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
            f"{each['ratio']['value']:.2f} ({each['ratio']['ci95'][0]:.2f} to {each['ratio']['ci95'][1]:.2f})",
        )
        for each in found
    ]
    header = ("problem", "algorithm", "best, lockstep", "best, stream", "stream − lockstep")
    return table((*header, *(f"{what}, lockstep / stream" for what in WHAT_ELSE), "ratio of seconds"), rows)


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
