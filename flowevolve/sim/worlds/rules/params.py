"""Parameters of the world `rules`: how well its models obey, reflect and judge; and named presets of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from flowevolve._util.errors import InputError
from flowevolve.tasks.house_style import HOUSE_STYLE


@dataclass(frozen=True, slots=True)
class RulesParams:
    """Each probability says how often its sentence is true, per occasion that it names. The defaults are the preset
    ``normal``.

    Raises:
        InputError: if a probability is not in [0, 1] or another number is out of range.
    """

    rules: int = len(HOUSE_STYLE)
    """How many rules of the house style, counted from its first, the world's perfect prompt states."""
    obedience: float = 0.95
    """The task model keeps a rule that its instruction states (per rule and answer)."""
    comfortable_lines: int = 24
    """Instructions of up to this many lines are obeyed fully."""
    fatigue: float = 0.01
    """The relative loss of obedience per further line; at most half of the obedience is lost."""
    insight: float = 0.25
    """The reflection model takes up an unmet rule (per rule and reply)."""
    max_edits: int = 2
    """The most rules that are taken up in one reply."""
    conflict: float = 0.12
    """A rule that is taken up is stated wrongly (per rule)."""
    mend: float = 0.7
    """A line that contradicts a rule which is taken up is removed; otherwise both stay (per rule)."""
    noise: float = 0.35
    """A line that fits only one of the examples is added (per reply)."""
    duplicate: float = 0.1
    """A rule that is stated already is stated again in other words (per reply)."""
    memory: int = 8
    """Instructions of up to this many lines are rewritten without loss."""
    forget: float = 0.015
    """A line of a longer instruction is lost (per line and reply)."""
    judge_error: float = 0.08
    """The judge gives a wrong verdict (per reply)."""
    unparsable: float = 0.015
    """A reflection, a verdict or a merge lacks the form that was asked for (per reply)."""
    comfortable_versions: int = 10
    """Of up to this many versions all additions are merged. Of n more versions, each addition is merged with the
    probability ``comfortable_versions`` / n.
    """
    merge_loss: float = 0.0
    """A merge overlooks an addition, however few versions there are (per addition)."""
    merge_garble: float = 0.0
    """A merge states a rule that it adds wrongly (per rule)."""
    merge_noise: float = 0.0
    """A merge keeps an added line that states no rule, though few versions have it (per line)."""
    interference: float = 0.0
    """The relative loss of obedience to each of two rules that get in each other's way, if both are stated: the first
    and the second rule of the house style, the third and the fourth, and so on.
    """
    noise_harm: float = 0.0
    """The relative loss of obedience for each line of a list that states no rule; at most half is lost."""
    paraphrase: float = 0.0
    """A rule that is taken up is worded otherwise than in the feedback (per rule)."""
    rewrite: float = 0.0
    """All lines that state a rule are worded anew (per reply)."""

    def __post_init__(self) -> None:
        ranges = {
            "rules": (1, len(HOUSE_STYLE)),
            "comfortable_lines": (0, None),
            "max_edits": (1, None),
            "comfortable_versions": (1, None),
            "memory": (0, None),
            "interference": (0, 0.5),  # beyond that, an instruction without one of the two rules would be better
        }
        for entry in fields(self):
            low, high = ranges.get(entry.name, (0, 1))
            value = getattr(self, entry.name)
            if value < low or (high is not None and value > high):
                limits = f"at least {low}" if high is None else f"from {low} to {high}"
                raise InputError(f"world rules: {entry.name} is {value}, but has to be {limits}")


PRESETS: dict[str, RulesParams] = {
    "easy": RulesParams(
        insight=0.4, conflict=0.02, noise=0.1, duplicate=0.02, forget=0.0, judge_error=0.02, unparsable=0.0
    ),
    "normal": RulesParams(),
    "noisy": RulesParams(noise=0.7, duplicate=0.3, forget=0.03, conflict=0.2, judge_error=0.15),
    "adversarial": RulesParams(
        insight=0.15, noise=0.7, duplicate=0.3, forget=0.05, conflict=0.35, mend=0.4, judge_error=0.3, unparsable=0.05
    ),
    "conflicting": RulesParams(conflict=0.4, mend=0.2),
    "misjudged": RulesParams(judge_error=0.6, unparsable=0.1),
    "lossy": RulesParams(merge_loss=0.2, merge_garble=0.1, merge_noise=0.5),
    "interfering": RulesParams(interference=0.3),
    "harmful": RulesParams(noise=0.5, noise_harm=0.05),
    "lengthy": RulesParams(comfortable_lines=8, fatigue=0.03),
    "reworded": RulesParams(paraphrase=1.0, rewrite=0.5),
    "fickle": RulesParams(obedience=0.7),
    "harsh": RulesParams(
        merge_loss=0.2,
        merge_garble=0.1,
        merge_noise=0.5,
        interference=0.3,
        noise=0.5,
        noise_harm=0.05,
        comfortable_lines=12,
        fatigue=0.02,
        paraphrase=1.0,
        rewrite=0.5,
        obedience=0.85,
    ),
}
"""The first four range from a world where almost every proposal helps to one where most do harm. In ``conflicting``,
edits often contradict the instruction that they edit; in ``misjudged``, verdicts on stale edits are worse than chance.

The others were made to be hard for those who merge edits before they are validated: merges lose, garble and keep noise
(``lossy``), edits get in each other's way (``interfering``), lines that help nobody do harm (``harmful``), length does
(``lengthy``), every reflection words things anew (``reworded``), scores vary between repeats (``fickle``), and all of
these at once (``harsh``).
"""


class ParamsWorld:
    """The base class of worlds whose models are as good as parameters say. The response cache tells them apart by
    `repr`.
    """

    def __init__(self, params: RulesParams = PRESETS["normal"]) -> None:
        self.params = params

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.params!r})"
