"""The section of the page on this bench: tokens of a step of ContextEvolve beside raw histories."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content, percent, table

RAW, OURS, ONE = "raw history", "context", "context, one step at a time"
WHAT = """\
*Simulated* (profile `{profile}`, a model that does not think; world `{world}`), {seeds} seeds, {evaluations}
evaluations each, {in_flight} steps in flight unless it says otherwise. A step is one call of who writes programs,
with all calls that go with it; tokens are those of prompts and answers (four characters each). *Raw history* is the
parent's code and that of eight others, as OpenEvolve shows by default; *context* is ContextEvolve as it ships, with
the code of at most three. Programs carry the text of other problems' seeds along, as comments, until they are as long
as the table says: what may change in them is the same at every length. The coder is simulated, and so are the agents:
what they say has the form and about the length of a model's, and that is all that counts here. Their abstracts don't
grow with comments, as a model's would not that is asked for 100 words. Intervals are 95 % (bootstrap over seeds)."""
LIVE = """\
With the same text as functions that nobody calls, which the simulated Summarizer describes one by one, up to what an
abstract may be:"""
THINKING = """\
A model that thinks pays for it at every call: with t tokens of thinking, a step of *context* takes
(calls a step − 1) × t more than one with a raw history, on programs of any length."""


def section(content: Content) -> str:
    """Markdown, with its heading."""
    rows: Sequence[Content] = content["rows"]
    plain, live = ([row for row in rows if row["live"] is wanted] for wanted in (False, True))
    parts = [
        "## Tokens of a step",
        "    python -m bench.context_tokens --json bench/results/context_tokens.json",
        WHAT.format(**content["settings"]),
        _lengths(plain, (RAW, OURS, ONE)),
        _verdict(plain),
        *([LIVE, _lengths(live, (RAW, OURS))] if live else []),
        "Where they go, at the shortest and at the longest:",
        _stages(plain),
        THINKING,
    ]
    return "\n\n".join(parts)


def _lengths(rows: Sequence[Content], methods: Sequence[str]) -> str:
    found = {(row["program_tokens"], row["method"]): row for row in rows}
    lines = [
        (
            f"{length}",
            *(f"{found[length, method]['tokens']['value']:.0f}" for method in methods),
            *(_share(found[length, method]["saved"]) for method in methods[1:]),
        )
        for length in dict.fromkeys(row["program_tokens"] for row in rows)
    ]
    return table(("tokens of a program", *methods, *(f"saved: {method}" for method in methods[1:])), lines)


def _share(value: Content) -> str:
    low, high = value["ci95"]
    return f"{percent(value['value'])} ({percent(low)} to {percent(high)})"


def _verdict(rows: Sequence[Content]) -> str:
    """From which length on fewer tokens are spent than with a raw history, by the interval's lower bound."""
    return (
        f"{_from(rows, OURS)} {_from(rows, ONE)} The paper: less than 5 % of a difference on short programs, nearly "
        "30 % fewer on long ones (figure 2b)."
    )


def _from(rows: Sequence[Content], method: str) -> str:
    ours = [row for row in rows if row["method"] == method]
    less = [row["program_tokens"] for row in ours if row["saved"]["ci95"][0] > 0]
    if not less:
        return f"*{method}* takes fewer tokens at none of these lengths."
    longest = max(ours, key=lambda row: float(row["program_tokens"]))
    return (
        f"*{method}* takes fewer tokens on programs of {min(less)} tokens and more; at {longest['program_tokens']} it "
        f"saves {percent(longest['saved']['value'])}."
    )


def _stages(rows: Sequence[Content]) -> str:
    lengths = [row["program_tokens"] for row in rows]
    shown = [row for row in rows if row["program_tokens"] in (min(lengths), max(lengths))]
    names = list(dict.fromkeys(name for row in shown for name in row["stages"]))
    lines = [
        (
            f"{row['program_tokens']}",
            str(row["method"]),
            *(f"{row['stages'][name]:.0f}" if row["stages"].get(name) else "–" for name in names),
            f"{row['calls']:.2f}",
            f"{row['per_minute']:.0f}",
        )
        for row in shown
    ]
    return table(("tokens of a program", "", *names, "calls a step", "steps a minute (virtual)"), lines)
