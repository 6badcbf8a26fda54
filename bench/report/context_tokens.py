"""Tokens of a step of ContextEvolve beside raw histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.report.text import Content, percent, table

RAW, OURS = "raw history", "context"
WHAT = """\
*Simulated* (world `{world}`), {seeds} seeds, {evaluations} evaluations each, {in_flight} steps in flight unless it
says otherwise. A step is one call of who writes programs, with all calls that go with it; tokens are those of prompts
and answers (four characters each). *Raw history* is the parent's code and that of eight others, as OpenEvolve shows by
default; *context* is ContextEvolve as it ships, with the code of at most three. Programs carry unused code of other
problems along until they are as long as the table says: what may change in them is the same at every length. The coder
is simulated, and so are the agents: their answers have the form and about the length of a model's, and that is all that
counts here. Intervals are 95 % (bootstrap over seeds)."""
PROFILES: Mapping[str, str] = {
    "gpt-4o-mini-api": "a model that does not think",
    "qwen3-8b-h100": "a model that thinks before every answer (450 tokens, median)",
}


def section(content: Content) -> str:
    """Markdown, with its heading."""
    rows: Sequence[Content] = content["rows"]
    parts = [
        "## Tokens of a step",
        "    python -m bench.context_tokens --json bench/results/context_tokens.json",
        WHAT.format(**content["settings"]),
    ]
    for profile in dict.fromkeys(row["profile"] for row in rows):
        of_profile = [row for row in rows if row["profile"] == profile]
        parts += [
            f"### `{profile}`: {PROFILES.get(profile, 'another model')}",
            _lengths(of_profile),
            _verdict(of_profile),
            "By agent, at the shortest and the longest:",
            _stages(of_profile),
        ]
    return "\n\n".join(parts)


def _lengths(rows: Sequence[Content]) -> str:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    found = {(row["program_tokens"], row["method"]): row for row in rows}
    lengths = list(dict.fromkeys(row["program_tokens"] for row in rows))
    lines = [
        (
            f"{length}",
            *(f"{found[length, method]['tokens']['value']:.0f}" for method in methods),
            _share(found[length, OURS]["saved"]),
        )
        for length in lengths
    ]
    return table(("tokens of a program", *methods, f"saved: {OURS} against {RAW}"), lines)


def _share(value: Content) -> str:
    low, high = value["ci95"]
    return f"{percent(value['value'])} ({percent(low)} to {percent(high)})"


def _verdict(rows: Sequence[Content]) -> str:
    """From what length on less is spent than with a raw history, for certain."""
    ours = [row for row in rows if row["method"] == OURS]
    less = [row["program_tokens"] for row in ours if row["saved"]["ci95"][0] > 0]
    longest = max(ours, key=lambda row: float(row["program_tokens"]))
    said = f"Fewer tokens from programs of {min(less)} tokens on" if less else "Fewer tokens at none of these lengths"
    return (
        f"{said}; at {longest['program_tokens']} it saves {percent(longest['saved']['value'])}. The paper: less than "
        "5 % of a difference on short programs, nearly 30 % fewer on long ones (figure 2b)."
    )


def _stages(rows: Sequence[Content]) -> str:
    lengths = [row["program_tokens"] for row in rows]
    shown = [row for row in rows if row["program_tokens"] in (min(lengths), max(lengths))]
    names = list(dict.fromkeys(name for row in shown for name in row["stages"]))
    lines = [
        (
            f"{row['program_tokens']}",
            str(row["method"]),
            *(f"{row['stages'][name]:.0f}" if name in row["stages"] else "–" for name in names),
            f"{row['calls']:.2f}",
        )
        for row in shown
    ]
    return table(("tokens of a program", "", *names, "calls a step"), lines)
