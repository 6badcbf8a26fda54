"""The section of the page on this bench: tokens of a step of ContextEvolve beside raw histories."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content, around, bounds, percent, table
from flowevolve.prompts.shipped import MAX_TOKENS

RAW, OURS, ONE = "raw history", "context", "context, one step at a time"
WHAT = """\
*Simulated* (profile `{profile}`, a model that does not think; world `{world}`), {seeds} seeds, {evaluations}
evaluations each, {in_flight} steps in flight unless it says otherwise. A step is one call that writes a program,
together with all calls that belong to it. Tokens are those of prompts and answers, at four characters each. *Raw
history* shows the parent's code and that of eight others, as OpenEvolve does by default. *Context* is ContextEvolve
with its defaults, which shows the code of at most three others. No prompt is shortened here; by default one of more
than 32,000 tokens is (`prompts.max_tokens`), and a raw history of long programs then loses most of their text. To make
programs as long as the table says, they carry the text of other problems' seeds as comments, so what may change in them
is the same at every length. The coder and the agents are simulated. What the agents say has the form and about the
length of a model's answers, and only that matters here. Their abstracts do not grow with the comments, and neither
would those of a model that is asked for 100 words. Intervals are 95 % (bootstrap over seeds, widened for few
values)."""
LIVE = """\
Here the same text is added as functions that nobody calls. The simulated Summarizer describes them one by one, up to
the longest that an abstract may be:"""
THINKING = """\
A model that thinks spends tokens on it in every call. With t tokens of thinking, a step of *context* takes
(calls a step − 1) × t tokens more than a step with a raw history, on programs of any length."""


def answer(content: Content) -> str:
    ours = [row for row in content["rows"] if row["method"] == OURS]
    rows = [row for row in ours if not row["live"] and row["program_tokens"] not in _shortened(content["rows"])]
    short, long = (min(rows, key=_length), max(rows, key=_length))
    live = [f", {_fewer(row['saved'])} where {row['program_tokens']} are functions" for row in ours if row["live"]]
    longer = "; longer raw histories are shortened by default" if _shortened(content["rows"]) else ""
    return (
        f"{_fewer(short['saved'])} on programs of {short['program_tokens']} tokens, {_fewer(long['saved'])} on those "
        f"of {long['program_tokens']}{''.join(live)}{longer}"
    )


def _shortened(rows: Sequence[Content]) -> list[int]:
    """The lengths of programs at which the defaults would shorten a prompt with a raw history."""
    return [row["program_tokens"] for row in rows if row["method"] == RAW and row["prompt"] > MAX_TOKENS]


def _fewer(saved: Content) -> str:
    if saved["value"] >= 0:
        return f"{around(saved, percent)} fewer"
    more = {"value": -saved["value"], "ci95": saved["ci95"] and [-end for end in reversed(saved["ci95"])]}
    return f"{around(more, percent)} more"


def _length(row: Content) -> float:
    return float(row["program_tokens"])


def section(content: Content) -> str:
    """Markdown, with its heading."""
    rows: Sequence[Content] = content["rows"]
    plain, live = ([row for row in rows if row["live"] is wanted] for wanted in (False, True))
    parts = [
        "# Tokens of a step",
        "    python -m bench.context_tokens --json bench/results/context_tokens.json",
        WHAT.format(**content["settings"], most=MAX_TOKENS),
        _lengths(plain, (RAW, OURS, ONE)),
        _verdict(plain),
        *([LIVE, _lengths(live, (RAW, OURS))] if live else []),
        "Where the tokens go, for the shortest and for the longest programs:",
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
    return around(value, percent)


def _verdict(rows: Sequence[Content]) -> str:
    """The length from which fewer tokens are spent than with a raw history, judged by the interval's lower bound."""
    return (
        f"{_from(rows, OURS)} {_from(rows, ONE)}{_cut(rows)} In the paper the difference is below 5 % on short "
        "programs, and long ones take nearly 30 % fewer tokens (figure 2b)."
    )


def _cut(rows: Sequence[Content]) -> str:
    """The length from which the figures do not apply to the defaults, which would shorten the raw histories."""
    lengths = _shortened(rows)
    if not lengths:
        return ""
    return (
        f" With the defaults raw histories of programs of {min(lengths)} tokens and more would be shortened to "
        f"{MAX_TOKENS:,}; what is saved then was not measured, and may be less than nothing."
    )


def _from(rows: Sequence[Content], method: str) -> str:
    ours = [row for row in rows if row["method"] == method]
    less = [row["program_tokens"] for row in ours if bounds(row["saved"])[0] > 0]
    if not less:
        return f"*{method}* takes fewer tokens at none of these lengths."
    longest = max(ours, key=lambda row: float(row["program_tokens"]))
    if longest["program_tokens"] not in less:
        lengths = " and ".join(map(str, less))
        return f"*{method}* takes fewer tokens on programs of {lengths} tokens, and not on longer ones."
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
