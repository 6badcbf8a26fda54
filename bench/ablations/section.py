"""The section of the page on this bench: what each mechanism does, beside what the paper reports."""

from __future__ import annotations

from bench._lib.text import Content, percent, ranged, table

STALENESS = """\
Paper: full and guarded end alike, reflective is best (94.3 % within 30 minutes). Here reflective is best too;
`full` is clearly worst: an edit made from an old version lacks what was accepted meanwhile, and here it is added as
it is. With more workers items come older to the pool, and an improvement costs `guarded` and `reflective` more
tokens.
"""
ALLOCATION = """\
Paper: 7 proposals a minute in lockstep to 99 at 16×8; adaptive control accepts most.

How the settings came about. The start of 8×4 is half the paper's largest setting, and was chosen after trying
others on two seeds on `qwen3-8b-h100`: `median_rate` beats the fixed setting it starts from at 8×4 (5.1 against 4.4
accepted a minute) and 16×4 (4.8 against 4.4), is level with it at 8×8 (4.1), and falls behind at 16×8 (4.3 against
4.4) and 4×4 (3.2 against 3.7). On `gpt-4o-mini-api`, where the backend is far from full and the first stage is what
limits, it is behind the fixed setting from 8×4 too. It has a reason to be: every stage filters, so the first stage
always hands on more than the median stage, and a rule that compares rates takes workers from it whether or not
anything waits behind it. The paper does not say how often workers are adjusted; of 30, 60 and 120 seconds the
longest did best (the shorter ones take the first stage down to a worker or two) and is used here. `pressure`
compares no rates: it looks at waiting items, the backend's use and the gap. These runs were recorded when `median_rate`
still counted items as handed on that a stage had sent to repair unworked; with other rates it makes other changes.
"""
SPECULATION = """\
570 rows, 171 of them for validation, so that validation is the larger part of the cost; the server is kept full by
`pressure` and `server_queue`, with up to 128 flows. Below alpha 1 `hold` is on, and `prefix` racing stops what does
not beat the best on the prefix. *Informative*: validation examples in random order. *Easy first*: sorted so that
the prefix holds the examples that candidates soon all pass.
"""
SCHEDULING = """\
More requests in flight than the server works on make everything older. `later_first` keeps gaps a little lower than
`fifo`; over three seeds the difference in score is noise.
"""


def headlines(content: Content) -> str:
    """The table that the README has."""
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
## Ablations

    python -m bench.ablations --json bench/results/ablations.json --figures bench/results/ablations

*Simulated*: {len(settings["seeds"])} seeds, {settings["minutes"]:.0f} virtual minutes a run, world preset \
`{settings["preset"]}`, median and range over seeds (two with `--quick`,
which has fewer settings). *Held out* is the best candidate's score on the test split. K1 × K3 are the workers of
generate, propose and screen, and of evaluate. The paper is FlashEvolve; its figures come from a real H100 and real data
sets, so only directions can be compared, not numbers. *Mean gap* is over the items that the update stage took, *max
gap* over all stages; an improvement is a pool update that raised the best score, and its tokens are the model's output.

A validation is a candidate whose evaluation ended with a verdict, be it on a part of the examples. The figures here
were recorded when the bench still counted evaluations as they began, those included that had none at the end of the
run or went stale: all validations a minute are too high, most so at alpha 1 of speculation, so the ratio is too low.

### Staleness handling (the paper's figure 5)

{_table(content, "staleness")}

![score over time](../bench/results/ablations/staleness.svg)

{STALENESS}
### Workers and allocation (figure 6a, b)

All with `reflective` staleness and at most 96 open flows; both adaptive policies start from 8×4.

{_allocation(content, "qwen3-8b-h100")}
{_allocation(content, "gpt-4o-mini-api")}
{ALLOCATION}
{_speculation(content)}
{_saturation(content)}
### Version gap under order and admission

With `pressure` and 96 flows; the gaps under each allocation policy are in the tables above.

{_table(content, "scheduling")}

![version gap](../bench/results/ablations/version_gap.svg)

{SCHEDULING}"""


def _allocation(content: Content, profile: str) -> str:
    chart = f"![accepted per minute](../bench/results/ablations/allocation_{profile}.svg)"
    return f"`{profile}`\n\n{_table(content, f'allocation {profile}')}\n\n{chart}\n"


def _speculation(content: Content) -> str:
    best = content["speculation"]
    reordered = ", reordered" if best["reordered"] else ""
    return f"""\
### Speculation (figure 6c)

{SPECULATION}
{_table(content, "speculation")}

![validations per minute](../bench/results/ablations/speculation.svg)

Paper: 3.15 validations a minute and +4.49 points at alpha 0.25, fewer at 0.5. Here the best alpha is \
{best["alpha"]:g}{reordered}: {best["validations_ratio"]:.2f} times
the validations of alpha 1, and a held-out {_score(best["score_loss"], 3)} (median of the differences by seed). With 90
validation examples instead of 171 the gain is smaller, as proposals are then the larger part of the cost: 2.0 times the
validations at alpha 0.1 and no difference in score that two or three seeds would show. `prefix` goes with
`validation = "improvement"`, GEPA's own rule (`alpha 1`) lets every validated candidate in; `alpha 1, improvement`
separates the two.
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
### Saturation

{table(("", "median (range)"), [(name, ranged(each, digits)) for name, each, digits in rows])}

From minute 5 to 30, `pressure`, `server_queue`, 128 flows. Paper (table 1, IFBench): 963 tokens/s in lockstep, 2,688 as
a stream.

![requests in flight](../bench/results/ablations/in_flight.svg)

A full server has its price: the more flows, the older what they bring to the pool (below), and the held-out scores of
runs with fewer flows are often higher. The bench keeps the server full to show that it can be; for a run, see the
tutorial.
"""


def _table(content: Content, name: str) -> str:
    runs = content["tables"][name]["runs"]
    header = ("", *next(iter(runs.values())))
    return table(header, [(run, *(ranged(spread) for spread in columns.values())) for run, columns in runs.items()])


def _score(loss: float, digits: int) -> str:
    return f"score {abs(loss):.{digits}f} {'lower' if loss > 0 else 'higher'}"


def _three(allocation: Content) -> str:
    return " / ".join(f"{allocation[name]:.1f}" for name in ("fixed", "median_rate", "ours"))
