"""The section of the page on this bench: what each mechanism does, beside what the paper reports."""

from __future__ import annotations

from bench._lib.text import Content, percent, ranged, table

STALENESS = """\
In the paper `full` and `guarded` end alike and `reflective` is best (94.3 % within 30 minutes). Here `reflective` is
best too, and `full` is clearly the worst: an edit that was made from an old version lacks what has been accepted in
the meantime, and `full` adds it as it is. With more workers items are older when they come to the pool, and an
improvement costs `guarded` and `reflective` more tokens.
"""
ALLOCATION = """\
The paper goes from 7 proposals a minute in lockstep to 99 at 16×8, and its adaptive control accepts the most.

How the settings came about. We start from 8×4, which is half of the paper's largest setting, and chose it after trying
others on two seeds of `qwen3-8b-h100`. There `median_rate` beats the fixed setting that it starts from at 8×4 (5.1
against 4.4 accepted a minute) and at 16×4 (4.8 against 4.4), equals it at 8×8 (4.1), and falls behind at 16×8 (4.3
against 4.4) and at 4×4 (3.2 against 3.7). On `gpt-4o-mini-api`, where the backend is far from full and the first stage
is the limit, it is behind the fixed setting from 8×4 on. This has a reason. Every stage filters, so the first stage
always hands on more than the median stage does, and a rule that compares rates takes workers away from it whether or
not anything waits behind it. The paper does not say how often it adjusts the workers. Of 30, 60 and 120 seconds the
longest did best and is used here; with the shorter ones the first stage ends up with a worker or two. `pressure`
compares no rates. It looks at how many items wait, how full the backend is, and the version gap.

Two warnings. Fixed 8×4 is not the best fixed setting. With the API, fixed 16×8 accepts more, and `ours` accepts 1.4
times as many as that, not the 1.6 times that a comparison with 8×4 gives. On the shape of the H100 fixed 16×8 accepts
fewer than `ours` and has the better held-out score (0.96, ours 0.93). And these runs were recorded when `median_rate`
still counted items as handed on that a stage had sent to repair without working on them. With other rates it makes
other changes.
"""
SPECULATION = """\
There are 570 rows, 171 of them for validation, so that validation is the larger part of the cost. `pressure` and
`server_queue` keep the server full, with up to 128 flows. Below alpha 1 `hold` is on, and `prefix` racing stops a
candidate that does not beat the best one on the first part of the examples. *Informative* means that validation
examples come in random order. *Easy first* means that they are sorted, so that the first part holds the examples that
all candidates soon pass.
"""
SCHEDULING = """\
When more requests are in flight than the server works on, everything gets older. `later_first` keeps version gaps a
little smaller than `fifo` does. Over three seeds the difference in score is noise.
"""


def answer(content: Content) -> str:
    by_workers: dict[str, dict[str, float]] = {}
    for name, run in content["tables"]["staleness"]["runs"].items():
        policy, workers = name.split()
        by_workers.setdefault(workers, {})[policy] = run["held out"]["median"]
    policies = ", ".join(f"`{policy}`" for policy in next(iter(by_workers.values())))
    scores = "; ".join(
        f"{', '.join(f'{score:.2f}' for score in found.values())} with {workers} workers"
        for workers, found in by_workers.items()
    )
    minutes = content["settings"]["minutes"]
    return f"held-out score after {minutes:.0f} minutes with {policies}: {scores} (medians)"


def headlines(content: Content) -> str:
    """The table of what each mechanism gains."""
    h100, api = (content["allocation"][profile] for profile in ("qwen3-8b-h100", "gpt-4o-mini-api"))
    best, waiting = content["speculation"], percent(content["waiting_share"])
    stopped = "speculation: validations per minute when weak candidates stop at the first tenth of 171 examples"
    rows = [
        (stopped, f"{best['validations_ratio']:.1f} times those of full validation; {_score(best['score_loss'], 2)}"),
        (
            "allocation: accepted proposals per minute, workers fixed / median rate / ours, Qwen3-8B's shape",
            _three(h100),
        ),
        ("the same, a remote API's shape", _three(api)),
        (
            "saturation: output tokens per second over the open-loop ceiling",
            f"{content['saturation']:.3f}, with {waiting} of the batch in the server's own queue",
        ),
    ]
    return table(("", ""), rows)


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
- *Mean gap* is the mean over the items that the update stage took. *Max gap* is the largest of any stage.
- An improvement is a pool update that raised the best score. Its tokens are those that the model wrote.
- A validation is a candidate whose evaluation ended with a verdict, if only on a part of the examples. When these
  figures were recorded the bench still counted evaluations as they began, also those that went stale or had no verdict
  when the run ended. So all validations a minute are too high, and most of all at alpha 1 of speculation, which makes
  the ratio too low.

## Staleness handling (the paper's figure 5)

{_table(content, "staleness")}

![score over time](../../bench/results/ablations/staleness.svg)

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

{SCHEDULING}"""


def _allocation(content: Content, profile: str) -> str:
    chart = f"![accepted per minute](../../bench/results/ablations/allocation_{profile}.svg)"
    return f"`{profile}`\n\n{_table(content, f'allocation {profile}')}\n\n{chart}\n"


def _speculation(content: Content) -> str:
    best = content["speculation"]
    reordered = ", reordered" if best["reordered"] else ""
    return f"""\
## Speculation (figure 6c)

{SPECULATION}
{_table(content, "speculation")}

![validations per minute](../../bench/results/ablations/speculation.svg)

The paper has 3.15 validations a minute and 4.49 points more at alpha 0.25, and fewer at 0.5. Here the best alpha is \
{best["alpha"]:g}{reordered}.
It brings {best["validations_ratio"]:.2f} times the validations of alpha 1, and a held-out \
{_score(best["score_loss"], 3)} (the median of the differences by
seed). With 90 validation examples instead of 171 proposals are the larger part of the cost and the gain is smaller: 2.0
times the validations at alpha 0.1, and no difference in score that two or three seeds would show. `prefix` goes
together with `validation = "improvement"`, while GEPA's own rule (`alpha 1`) lets every validated candidate in. The row
`alpha 1, improvement` tells the two apart.
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

A full server has its price. The more flows there are, the older is what they bring to the pool (below), and runs with
fewer flows often have higher held-out scores. The bench keeps the server full to show that it can be done. For settings
to run with, see [the presets](../how-to/presets.md).
"""


def _table(content: Content, name: str) -> str:
    runs = content["tables"][name]["runs"]
    header = ("", *next(iter(runs.values())))
    return table(header, [(run, *(ranged(spread) for spread in columns.values())) for run, columns in runs.items()])


def _score(loss: float, digits: int) -> str:
    return f"score {abs(loss):.{digits}f} {'lower' if loss > 0 else 'higher'}"


def _three(allocation: Content) -> str:
    return " / ".join(f"{allocation[name]:.1f}" for name in ("fixed", "median_rate", "ours"))
