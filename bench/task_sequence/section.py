"""The section of the page on this bench: CSE's global memory over a sequence of tasks."""

from __future__ import annotations

import math

from bench._lib.text import Content, around, direction, table

WHAT = """\
CSE works on {tasks} related efficiency problems in this order, with {evaluations} evaluations of each and {seeds}
seeds, one step at a time. It does so once with a global memory and once without. The memory is in a local folder that
is empty at the start, and embeddings are hashed. The coder is *simulated* (profile `{profile}`, world `{world}`), and
its lessons name kinds of changes that went well or badly. The same kind of change helps in three tasks that follow each
other, and another kind in the next three, so what is remembered can also mislead. A score is one over the memory-time
integral, which is **measured** on this machine and given as a multiple of the seed program's in the same run. Means are
geometric and intervals 95 % (bootstrap over seeds, widened for few values). Before the first task there is nothing to
remember, so its difference is chance: different measurements choose different parents. The machine's load (all programs
that wanted a core, ours among them) was {load:.1f}."""

COMMAND = "    python -m bench.task_sequence --seeds {seeds} --json bench/results/task_sequence.json"
FOUND = """\
Direction of global memory over the later tasks: {direction}. *Recalled* is the number of entries that a run recalled
over all its steps, and *added* the number that it added at its end.

**Another measurement came out otherwise.** Scores have measured times in them, so the same seeds make other runs each
time. The same command at f113a20a gave 1.24 (1.05 to 1.51) times over the later tasks, at 69a9468f 0.99 (0.91 to 1.09);
what changed between them is how a run is resumed, and none of these was. So what the memory is worth here can't be told
from either."""


def answer(content: Content) -> str:
    later = content["later"]
    return (
        f"{_times(later['difference'])} times the score without it, over all tasks but the first; another measurement "
        "came out otherwise, so that it can't be told"
    )


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
            "# A sequence of tasks: global memory",
            COMMAND.format(**content["settings"]),
            said,
            table(header, rows),
            FOUND.format(direction=direction(later["difference"])),
        ]
    )


def _times(each: Content) -> str:
    return around(each, lambda gain: f"{math.exp(gain):.2f}")
