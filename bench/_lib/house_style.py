"""Generates the rows of the task `house_style`, and computes an instruction's score on them in the world `rules`.

``python -m bench._lib.house_style`` writes the file that ships with the package again.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.sim.worlds.rules.text import Statement
from flowevolve.sim.worlds.rules.world import RulesWorld
from flowevolve.sim.worlds.rules.writer import write_answer
from flowevolve.tasks.house_style import DATA_FILE, HOUSE_STYLE, SEED_PROMPT
from flowevolve.tasks.verifiers import Constraint

_TOPICS = (
    "the new travel booking tool",
    "the move to the riverside office",
    "the change of our payroll provider",
    "the spring maintenance of the loading docks",
    "our revised expense policy",
    "the pilot of a four day week",
    "the replacement of desk phones",
    "the return of faulty coffee machines",
    "our first apprenticeship programme",
    "the closing of the north car park",
    "the weekly stock count",
    "a delayed shipment of spare parts",
    "the launch of the self-service portal",
    "the annual supplier review",
    "our switch to recycled packaging",
    "the fire drill on Thursday",
    "a price change for printed catalogues",
    "the retirement of the old intranet",
    "the winners of the ideas contest",
    "the opening hours over the holidays",
    "the shared calendar for meeting rooms",
    "a recall of the blue garden hose",
    "the mentoring scheme for new starters",
    "our stand at the trade fair",
    "the migration of mailboxes to the cloud",
    "the lost property shelf at reception",
    "a survey of commuting habits",
    "the refurbishment of the canteen",
    "our partnership with the local college",
    "the quarterly sales figures",
    "the rules for visiting contractors",
    "a power cut in the east building",
    "the rollout of electronic signatures",
    "the handover of the night shift",
    "our new warranty terms",
    "the backlog of repair requests",
    "a typing mistake on last month's invoices",
    "the book club in the break room",
    "the upgrade of the label printers",
    "our plan for remote interviews",
    "the cleaning rota of the test kitchen",
    "a late payment by a regional dealer",
    "the training day on data protection",
    "the search for a second warehouse",
    "our summer volunteering week",
    "the bicycle lease offer",
    "the trial of a chat assistant on the website",
    "a complaint regarding a noisy delivery",
)
_REQUESTS = (
    "Write a short announcement for all staff about {topic}.",
    "Draft an e-mail to the department heads about {topic}.",
    "We need a brief intranet post about {topic}. Could you write it?",
    "Compose a polite reply to a reader who asked about {topic}.",
    "Please prepare a one-page memo about {topic} for the works council.",
    "Help me write a message to our partners about {topic}.",
    "I have to brief my colleagues tomorrow. Write me some speaking notes about {topic}.",
    "Write a notice for the board in the lobby about {topic}.",
    "Give me a summary for the management meeting about {topic}.",
    "Draft a newsletter item about {topic}.",
    "Somebody has to tell the branch offices about {topic}. Write the text.",
    "Write an entry for our frequently asked questions about {topic}.",
)
_DETAILS = (
    "",
    "Say why it matters and what happens next.",
    "Keep the tone friendly.",
    "Most readers have not heard of it yet.",
    "There were some worried questions last week, so be reassuring.",
    "Name the people to ask without inventing phone numbers.",
    "It takes effect on the first of next month.",
    "Half of the readers are not native speakers.",
    "The last message was too vague, so be concrete.",
    "Mention that feedback is welcome until Friday.",
)
_SPLITS = (("train", 0.4), ("val", 0.7), ("test", 1.0))
_CONCENTRATION = 3.0


def make_rows(rules: int, per_example: int, overlap: float, rows: int, seed: int) -> list[dict[str, JSON]]:
    """Make rows with IFEval's fields plus ``split``: 40 % train, 30 % val and 30 % test, in this order.

    Args:
        rules: how many rules of the house style are in use, starting with its first.
        per_example: how many of them each row needs.
        overlap: at 0 all rules are needed equally often; towards 1 more and more rows need the same few rules. The rule
            with rank r, counted from 1 in an order drawn from ``seed``, is drawn with weight r ** (-3 * overlap).
        rows: the number of rows; no two of them have the same prompt.
        seed: the seed of everything drawn here.

    Raises:
        InputError: if a number is out of its range.
    """
    stems = list(product(_TOPICS, _REQUESTS))
    _require("rules", rules, 1, len(HOUSE_STYLE))
    _require("per_example", per_example, 1, rules)
    _require("overlap", overlap, 0, 1)
    _require("rows", rows, 1, len(stems))
    rng = random.Random(seed)
    ranked = rng.sample(range(rules), rules)
    weights = {rule: rank ** (-_CONCENTRATION * overlap) for rank, rule in enumerate(ranked, 1)}
    made: list[dict[str, JSON]] = []
    for number, (topic, request) in enumerate(rng.sample(stems, rows)):
        needed = [HOUSE_STYLE[index] for index in sorted(_draw(weights, per_example, rng))]
        prompt = f"{request.format(topic=topic)} {rng.choice(_DETAILS)}".rstrip()
        made.append(
            {
                "key": 1000 + number,
                "prompt": prompt,
                "instruction_id_list": [rule.id for rule in needed],
                "kwargs": [dict(rule.kwargs) for rule in needed],
                "split": next(split for split, end in _SPLITS if number < end * rows),
            }
        )
    return made


def rules_of(row: Mapping[str, JSON]) -> list[Constraint]:
    """The rules that a row's answer is checked against.

    Raises:
        InputError: if ``instruction_id_list`` and ``kwargs`` are not lists of equal length.
    """
    ids, kwargs = row["instruction_id_list"], row["kwargs"]
    if not isinstance(ids, list) or not isinstance(kwargs, list) or len(ids) != len(kwargs):
        raise InputError(f"row {row['key']}: instruction_id_list and kwargs must be lists of one length")
    return [
        Constraint(str(name), given if isinstance(given, dict) else {}) for name, given in zip(ids, kwargs, strict=True)
    ]


def _draw(weights: Mapping[int, float], count: int, rng: random.Random) -> list[int]:
    """Draw a weighted sample without replacement: the largest u ** (1 / weight) (Efraimidis and Spirakis, 2006)."""
    keys = {index: rng.random() ** (1 / weight) for index, weight in weights.items()}
    return sorted(keys, key=keys.__getitem__, reverse=True)[:count]


def _require(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(f"make_rows: {name} is {value}; choose a value from {low} to {high}")


def shipped_rows() -> list[dict[str, JSON]]:
    """Generate the rows of the shipped file again."""
    return make_rows(rules=len(HOUSE_STYLE), per_example=4, overlap=0.2, rows=300, seed=11)


def write_rows(rows: Sequence[Mapping[str, JSON]], path: Path) -> None:
    """Write ``rows`` as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def perfect_prompt(world: RulesWorld) -> str:
    """An instruction that states each rule of the style once.

    No other instruction scores higher, unless rules conflict or long instructions are not obeyed.
    """
    return "\n".join((SEED_PROMPT, *(f"- {rule.describe()}" for rule in HOUSE_STYLE[: world.params.rules])))


PRECISION = 0.002
"""Expected scores that differ by at most this count as equal: drawing at random leaves an error of about half of it."""


def expected(world: RulesWorld, instruction: str, rows: Sequence[Mapping[str, JSON]], draws: int = 600) -> float:
    """An instruction's expected score on ``rows``, each of which scores the share of its rules that are met.

    The probability that an answer keeps a rule is known. Only how often the rule is met by answers that keep it, and by
    answers that don't, is estimated from ``draws`` random answers. Two instructions that say the same things in
    different orders therefore get exactly the same score.
    """
    met = _chances(world, instruction, draws)
    return fmean(fmean(met[rule.describe()] for rule in rules_of(row)) for row in rows)


def _chances(world: RulesWorld, instruction: str, draws: int) -> Mapping[str, float]:
    """The probability that an answer meets each rule of the style, by the rule's description."""
    rng = random.Random(0)
    said = sorted(((sorted(each, key=repr), probability) for each, probability in world.said(instruction)), key=repr)
    seen: dict[tuple[str, bool], list[bool]] = defaultdict(list)
    for _ in range(draws):
        kept = [rng.choice(each) for each, probability in said if rng.random() < probability]
        text = write_answer("this matter", kept, rng)
        for rule in HOUSE_STYLE:
            seen[rule.describe(), Statement(rule) in kept].append(rule.met_by(text))
    return {rule.describe(): _chance(rule, said, seen) for rule in HOUSE_STYLE}


def _chance(
    rule: Constraint,
    said: Sequence[tuple[Sequence[Statement], float]],
    seen: Mapping[tuple[str, bool], Sequence[bool]],
) -> float:
    name, statement = rule.describe(), Statement(rule)
    kept = sum(probability / len(each) for each, probability in said if statement in each)
    sides = ((True, kept), (False, 1 - kept))
    return sum(share * fmean(found) for side, share in sides if (found := seen.get((name, side))))


if __name__ == "__main__":
    write_rows(shipped_rows(), DATA_FILE)
