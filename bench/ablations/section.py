"""The section of the page on this bench: what each mechanism does, beside what the paper reports."""

from __future__ import annotations

from bench._lib.text import Content, ranged, table

ACCEPTED, HELD_OUT = "accepted/min", "held out"
STALENESS = """\
In the paper `full` and `guarded` end alike and `reflective` is best (94.3 % within 30 minutes). An edit that was made
from an old version lacks what has been accepted in the meantime, and `full` adds it as it is.
"""
ALLOCATION = """\
The paper goes from 7 proposals a minute in lockstep to 99 at 16×8, and its adaptive control accepts the most.

How the settings came about. We start from 8×4, which is half of the paper's largest setting, and chose it after trying
others on `qwen3-8b-h100`, partly with the same seeds. The paper does not say how often it adjusts the workers. Of 30,
60 and 120 seconds the longest did best and is used here; with the shorter ones the first stage ends up with a worker or
two. That has a reason. Every stage filters, so the first stage always hands on more than the median stage does, and a
rule that compares rates takes workers away from it whether or not anything waits behind it. `pressure` compares no
rates. It looks at how many items wait, how full the backend is, and the version gap.
"""
SPECULATION = """\
There are 570 rows, 171 of them for validation, so that validation is the larger part of the cost. `pressure` and
`server_queue` keep the server full, with up to 128 flows. Below alpha 1 `hold` is on, and `prefix` racing stops a
candidate that does not beat the best one on the first part of the examples. *Informative* means that validation
examples come in random order. *Easy first* means that they are sorted, so that the first part holds the examples that
all candidates soon pass.
"""


def answer(content: Content) -> str:
    by_workers = _by_workers(content)
    policies = ", ".join(f"`{policy}`" for policy in next(iter(by_workers.values())))
    scores = "; ".join(
        f"{', '.join(f'{score:.2f}' for score in found.values())} with {workers} workers"
        for workers, found in by_workers.items()
    )
    minutes = content["settings"]["minutes"]
    return f"held-out score after {minutes:.0f} minutes with {policies}: {scores} (medians)"


def section(content: Content) -> str:
    settings = content["settings"]
    return f"""\
# Ablations

    python -m bench.ablations --json bench/results/ablations.json --figures bench/results/ablations

*Simulated*: {len(settings["seeds"])} seeds, {settings["minutes"]:.0f} virtual minutes a run, world preset \
`{settings["preset"]}`. Figures are the median and the range over
seeds (two with `--quick`, which also tries fewer settings). The paper is FlashEvolve. Its figures come from a real H100
and real data sets, so only directions can be compared, not numbers.

- *Held out* is the best candidate's score on the test split.
- In K1×K3, K1 is the number of workers of each of generate, propose and screen, and K3 that of evaluate.
- A *gap* is how many changes of the pool an item lacks. *Mean gap* is the mean over the items that the update
  stage took. *Max gap* is the largest of any stage.
- What lacks some is stale: `full` lets it go on, `guarded` discards it, `reflective` has it repaired.
- *Fixed 8x4* keeps its workers. `median_rate` is FlashEvolve's rule for moving them, and *ours*, `pressure`, moves them
  to where items wait. `server_queue` bounds the requests in flight by the server's own queue; *256 in flight* is a
  fixed bound. Of requests that wait, `later_first` sends those of later stages first, and `fifo` the oldest.
- A validation begins with the share *alpha* of its examples. With `hold` the rest waits for the verdict on these, and
  *reordered* puts examples last that candidates of late have all passed. [All of this](../reference/policies.md) can be
  set.
- An improvement is a pool update that raised the best score. Its tokens are those that the model wrote.
- A validation is a candidate whose evaluation ended with a verdict, if only on a part of the examples.
- Where two ranges overlap, runs of so few seeds don't tell which setting is better.

## Staleness handling (the paper's figure 5)

{_table(content, "staleness")}

![score over time](../../bench/results/ablations/staleness.svg)

{_best_and_worst(content)}
{STALENESS}
## Workers and allocation (figure 6a, b)

All runs have `reflective` staleness and at most 96 open flows. Both adaptive policies start from 8×4.

{_allocation(content, "qwen3-8b-h100")}
{_allocation(content, "gpt-4o-mini-api")}
{ALLOCATION}
{_speculation(content)}
{_saturation(content)}
## Version gap under order and admission

These runs have `pressure` and 96 flows. The gaps under each allocation policy are in the tables above.

{_table(content, "scheduling")}

![version gap](../../bench/results/ablations/version_gap.svg)
"""


def _by_workers(content: Content) -> dict[str, dict[str, float]]:
    """For each number of workers, the median held-out score of each staleness policy."""
    by_workers: dict[str, dict[str, float]] = {}
    for name, run in content["tables"]["staleness"]["runs"].items():
        policy, workers = name.split()
        by_workers.setdefault(workers, {})[policy] = run[HELD_OUT]["median"]
    return by_workers


def _best_and_worst(content: Content) -> str:
    said = (
        f"`{max(found, key=found.__getitem__)}` is best and `{min(found, key=found.__getitem__)}` worst "
        f"with {workers} workers"
        for workers, found in _by_workers(content).items()
    )
    return f"By the median score held out, {'; '.join(said)}."


def _allocation(content: Content, profile: str) -> str:
    chart = f"![accepted per minute](../../bench/results/ablations/allocation_{profile}.svg)"
    name = f"allocation {profile}"
    beside = _beside_fixed(content["tables"][name]["runs"])
    return f"`{profile}`\n\n{_table(content, name)}\n\n{beside}\n\n{chart}\n"


def _beside_fixed(runs: Content) -> str:
    """Compare the adaptive policies with the fixed setting that accepts most, and name the one with the best score."""
    accepted, scores = ({name: run[column]["median"] for name, run in runs.items()} for column in (ACCEPTED, HELD_OUT))
    most = max((name for name in runs if name.startswith("fixed")), key=accepted.__getitem__)
    times = " and ".join(
        f"`{name}` {accepted[name] / accepted[most]:.2f} times" for name in runs if not name.startswith("fixed")
    )
    best = max(scores, key=scores.__getitem__)
    return (
        f"By the medians `{most}` accepts most of the fixed settings, {times} as many, and `{best}` has the best score "
        "of all."
    )


def _speculation(content: Content) -> str:
    best, runs = content["speculation"], content["tables"]["speculation"]["runs"]
    reordered = ", reordered" if best["reordered"] else ""
    tried = sum(name.startswith("informative, alpha 0") for name in runs)
    score = f"{abs(best['score_loss']):.3f} {'lower' if best['score_loss'] > 0 else 'higher'}"
    return f"""\
## Speculation (figure 6c)

{SPECULATION}
{_table(content, "speculation")}

![validations per minute](../../bench/results/ablations/speculation.svg)

The paper has 3.15 validations a minute and 4.49 points more at alpha 0.25, and fewer at 0.5. Of {tried} settings below
alpha 1, with examples in random order, the best was *alpha {best["alpha"]:g}{reordered}*, with \
{best["validations_ratio"]:.2f} times the
validations of alpha 1 and a held-out score {score} (medians over seeds). It was picked by these
same runs, so less is to be expected of others.

`prefix` goes together with `validation = "improvement"`, while GEPA's own rule (`alpha 1`) lets every validated
candidate in. The row `alpha 1, improvement` tells the two apart.
"""


def _saturation(content: Content) -> str:
    spread = content["spread"]
    rows = [
        ("output tokens/s of the stream over the open-loop ceiling of the same server", spread["saturation"], 3),
        ("the server's own queue over its batch", spread["waiting_share"], 3),
        ("output tokens/s, stream", spread["stream_tokens_per_second"], 0),
        (
            "output tokens/s, all the stream's requests in the server's queue at once",
            spread["open_loop_tokens_per_second"],
            0,
        ),
        ("output tokens/s, lockstep of width 1", spread["lockstep_tokens_per_second"], 0),
    ]
    return f"""\
## Saturation

{table(("", "median (range)"), [(name, ranged(each, digits)) for name, each, digits in rows])}

These are the minutes 5 to 30 of runs with `pressure`, `server_queue` and 128 flows. The paper has 963 tokens/s in
lockstep and 2,688 as a stream (table 1, IFBench).

![requests in flight](../../bench/results/ablations/in_flight.svg)

The bench keeps the server full to show that it can be done. How old work is then is in the last table. For settings to
run with, see [the presets](../how-to/presets.md).
"""


def _table(content: Content, name: str) -> str:
    runs = content["tables"][name]["runs"]
    header = ("", *next(iter(runs.values())))
    return table(header, [(run, *(ranged(spread) for spread in columns.values())) for run, columns in runs.items()])
