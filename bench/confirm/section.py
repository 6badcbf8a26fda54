"""The section of the page on this bench: claims and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench._lib.stats import Interval
from bench._lib.text import Content, around, table
from bench.confirm.claims import CLAIMS, LEAST_REPEATS, Answer, answers
from bench.confirm.rows import ROW_SETS, SHIPPED


def answer(content: Content) -> str:
    if content["rehearsal"]:
        made = max(len(rows["repeats"]) for rows in content["rows"].values())
        counted = f"counted as {_paid(content['paid'])}"
        return (
            f"it ran: {made} repeat{'' if made == 1 else 's'}, {counted}; nothing was paid, and a rehearsal judges no "
            "claim"
        )
    said = [each.verdict for answered in _answers(content).values() for each in answered[1:]]
    counts = ", ".join(f"{said.count(verdict)} {verdict}" for verdict in ("confirmed", "refuted", "can't tell"))
    return f"of {len(said)} claims {counts}, by `{content['settings']['sampling']['model']}`"


def section(content: Content) -> str:
    settings, sizes = content["settings"], content["settings"]["sizes"]
    sampling = settings["sampling"]
    warm = "the endpoint's own" if sampling["temperature"] is None else f"{sampling['temperature']:g}"
    return f"""\
# Confirmed by a capable model?

    {_command(content)}

{_standing(content)}

gepa 0.1.4's own loop and the defaults of this package, as of commit {content["commit"]}, get the same rows, seed prompt
and model (`{sampling["model"]}`, temperature {warm}, answers of at most {sampling["max_tokens"]} tokens),
{sampling["concurrency"]} requests in flight and {settings["calls"]} metric calls; gepa finishes the iteration that it
is in and may take a few more. Each has {sizes["train"]} rows for minibatches and {sizes["validation"]} for validation.
The best prompts are scored on {sizes["held_out"]} rows held out, which neither has seen. All calls go through one gate
that counts what they cost by the usage that the endpoint reports.

{_verdicts(content)}

Figures are mean differences of held-out scores, with 95 % intervals over rows and repeats (the bootstrap of crossed
factors). No verdict is read from fewer than {LEAST_REPEATS} repeats. The claims about gepa's score can't be confirmed
where gepa's own loop does not improve the seed prompt: whoever finds nothing there is not worse.

{_repeats(content)}

{"Counted" if content["rehearsal"] else "Paid"} in all, with what planned it: {_paid(content["paid"])}."""


def _command(content: Content) -> str:
    settings, where = content["settings"], content["rehearsed_on"]
    sampling, sizes = settings["sampling"], settings["sizes"]
    asked = f"--base-url URL --model {sampling['model']}" if where is None else f"--rehearse-on {where}"
    rows = "" if settings["rows"] == [SHIPPED] else f" --data FOLDER --rows {' '.join(settings['rows'])}"
    caps = "".join(f" --{unit} {amount:.12g}" for unit, amount in settings["caps"].items())
    prices = " --input-price P --output-price P" if "dollars" in settings["caps"] else ""
    sized = {
        "repeats": max(len(each["repeats"]) for each in content["rows"].values()),
        "calls": settings["calls"],
        "validation": sizes["validation"],
        "held-out": sizes["held_out"],
        "max-tokens": sampling["max_tokens"],
        "train": sizes["train"],
        "concurrency": sampling["concurrency"],
    }
    if sampling["temperature"] is not None:
        sized["temperature"] = sampling["temperature"]
    given = " ".join(f"--{name} {value}" for name, value in sized.items())
    file = {None: "confirm", "sim": "confirm_rehearsal", "vllm-cpu": "confirm_smollm2"}[where]
    return f"python -m bench.confirm {asked}{caps}{prices}{rows} {given} --json bench/results/{file}.json"


def _standing(content: Content) -> str:
    if not content["rehearsal"]:
        return "All answers are those of the model at the endpoint that was named."
    prices = (
        " Dollars are counted at prices that were given to it." if content["settings"]["caps"].get("dollars") else ""
    )
    return (
        f"**This is a rehearsal, {content['rehearsal']}.** It shows that the command works, and says nothing of the\n"
        "claims: these are still to be confirmed or refuted by a capable model. The verdicts below are only what the\n"
        f"command makes of these figures. Nothing was paid.{prices}"
    )


def _answers(content: Content) -> dict[str, list[Answer]]:
    return {name: answers([repeat["scores"] for repeat in rows["repeats"]]) for name, rows in content["rows"].items()}


def _verdicts(content: Content) -> str:
    found = _answers(content)
    lines = [
        (claim.text, name, _signed(said.figure), _verdict(said))
        for number, claim in enumerate(CLAIMS)
        for name, said in ((name, answered[number]) for name, answered in found.items())
    ]
    said = "verdict, were this no rehearsal" if content["rehearsal"] else "verdict"
    return table(("claim", "rows", "difference", said), lines)


def _verdict(said: Answer) -> str:
    return f"**{said.verdict}**" if not said.reason else f"**{said.verdict}**: {said.reason}"


def _signed(figure: Interval | None) -> str:
    return "–" if figure is None else around(figure.as_json(), "{:+.3f}".format)


def _repeats(content: Content) -> str:
    header = (
        "rows",
        "repeat",
        "seed",
        "gepa",
        "defaults",
        "defaults, half of gepa's time",
        "seconds",
        "metric calls",
        "counted" if content["rehearsal"] else "paid",
    )
    lines = [
        (name, str(number), *(_mean(each["scores"].get(of)) for of in ("seed", "gepa", "defaults", "half")),
         _both(each["seconds"]), _both(each["calls"]), _sum(each["paid"]))
        for name, rows in content["rows"].items()
        for number, each in enumerate(rows["repeats"], 1)
    ]  # fmt: skip
    about = "\n".join(f"- `{name}`: {ROW_SETS[name].about}." for name in content["rows"])
    return f"{table(header, lines)}\n\nScores are those on rows held out. Seconds and calls: gepa, defaults.\n\n{about}"


def _mean(scores: Sequence[float] | None) -> str:
    return "–" if scores is None else f"{fmean(scores):.3f}"


def _both(figures: dict[str, float]) -> str:
    return ", ".join(f"{figures[method]:.0f}" if method in figures else "–" for method in ("gepa", "defaults"))


def _sum(paid: Mapping[str, Content]) -> str:
    total = {
        unit: sum(part[unit] for part in paid.values()) for unit in ("prompt_tokens", "completion_tokens", "dollars")
    }
    return _paid(total)


def _paid(paid: Content) -> str:
    tokens = f"{paid['prompt_tokens'] + paid['completion_tokens']:,} tokens"
    return f"{paid['dollars']:.2f} dollars, {tokens}" if paid["dollars"] else tokens
