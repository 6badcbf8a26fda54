"""The section of the page on this bench: evaluations a second with all cores busy."""

from __future__ import annotations

from bench._lib.text import Content, Verdicts, percent, table


def answer(content: Content) -> str:
    said = (f"{row['of_the_cores_limit']:.2f} for programs of {row['milliseconds']:g} ms" for row in content["rows"])
    return ", ".join(said)


def goals(content: Content) -> Verdicts:
    return {
        f"cores kept busy by programs of {row['milliseconds']:g} ms": _is_met(row, content) for row in content["rows"]
    }


def _is_met(row: Content, content: Content) -> bool:
    return float(row["of_the_cores_limit"]) >= float(content["goal"])


def section(content: Content) -> str:
    settings, rows = content["settings"], content["rows"]
    shown = [
        (
            f"{row['milliseconds']:g}",
            f"{row['cores_limit_per_second']:.1f}",
            f"{row['evaluations_per_second']:.1f}",
            f"{row['cut_short_per_second']:.1f}",
            f"{row['start_each_per_second']:.1f}",
            f"{row['of_the_cores_limit']:.2f}",
        )
        for row in rows
    ]
    header = ("ms of a core", "the cores' limit", "the run", "ended sooner", "a new process each", "of the limit")
    met = [f"{row['milliseconds']:g} ms" for row in rows if _is_met(row, content)]
    busiest = max(row["own_cpu_share"] for row in rows)
    return f"""\
# Evaluations a second

    python -m bench.evaluations --json bench/results/evaluations.json

Programs run in the sandbox and use up a set time of a core each, while LLM calls go on beside them. The calls are
*simulated* (profile `{settings["profile"]}`, in the same process). Time is real, {settings["seconds"]:.0f} seconds
for each row, each measured once. A program that has used up its time counts, whatever its result is worth. One that the
coder broke *ended sooner*. The engine and the simulated server share the cores with the programs and took at most
{percent(busiest)} of them. All rates are per second. *The cores' limit* is the rate of plain processes that call the
function again and again. *A new process each* is the rate of plain Python processes that are started anew for each
call.

{table(header, shown)}

The goal is at least {content["goal"]:g} of the cores' limit. It is met for programs of \
{", ".join(met) or "no length tried"}.
"""
