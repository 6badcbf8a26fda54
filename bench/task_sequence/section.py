"""The section of the page on this bench: CSE's global memory over a sequence of tasks."""

from __future__ import annotations

import math

from bench._lib.text import Content, direction, table

WHAT = """\
CSE on {tasks} related efficiency problems in this order, {evaluations} evaluations of each, {seeds} seeds, one step at
a time: with a global memory in a local folder that is empty at the first (hashed embeddings), and without. *Simulated*
coder (profile `{profile}`, world `{world}`), whose lessons name kinds of changes that went well or badly; of three
tasks that follow each other the same kind helps, of the next three another, so that what is remembered can mislead,
too. A score is one over the memory-time integral, **measured** here, and given as a multiple of the seed program's in
the same run; means are geometric, intervals 95 % (bootstrap over seeds). Before the first task there is nothing to
remember, so what it differs by is chance: different measurements choose different parents. The machine's load (all
programs that wanted a core, ours among them) was {load:.1f}."""

COMMAND = "    python -m bench.task_sequence --seeds {seeds} --json bench/results/task_sequence.json"
FOUND = """\
Direction of global memory over the later tasks: {direction}. *Recalled* and *added* are entries of a run, the former
over all its steps."""


def section(content: Content) -> str:
    """Markdown, with its heading."""
    said = WHAT.format(tasks=len(content["tasks"]), **content["settings"])
    rows = [
        (
            f"{place}. {each['task']}",
            _times(each["without"]),
            _times(each["with"]),
            _times(each["difference"]),
            f"{each['better']} / {each['equal']} / {each['worse']}",
            f"{each['recalled']:.1f}",
            f"{each['added']:.1f}",
        )
        for place, each in enumerate(content["tasks"], 1)
    ]
    later = content["later"]
    counts = f"{later['better']} / {later['equal']} / {later['worse']}"
    rows.append(("all but the first", "", "", _times(later["difference"]), counts, "", ""))
    header = ("task", "without", "with", "with over without", "better / equal / worse", "recalled", "added")
    return "\n\n".join(
        [
            "## A sequence of tasks: global memory",
            COMMAND.format(**content["settings"]),
            said,
            table(header, rows),
            FOUND.format(direction=direction(later["difference"])),
        ]
    )


def _times(each: Content) -> str:
    value, low, high = (math.exp(number) for number in (each["value"], *each["ci95"]))
    return f"{value:.2f} ({low:.2f} to {high:.2f})"
