"""How well the models of the world `rules` obey, reflect and judge: one frozen set of parameters, and named presets."""

from __future__ import annotations

from dataclasses import dataclass, fields

from flowevolve.errors import InputError
from flowevolve.tasks.house_style import HOUSE_STYLE


@dataclass(frozen=True, slots=True)
class RulesParams:
    """Probabilities are per occasion named. The defaults are the preset ``normal``.

    Raises:
        InputError: if a probability is not in [0, 1] or a count is out of range.
    """

    rules: int = len(HOUSE_STYLE)
    """How many rules of the house style (its first ones) the world's perfect prompt states."""
    obedience: float = 0.95
    """The task model keeps a rule that its instruction states, per answer."""
    comfortable_lines: int = 24
    """Up to this length of the instruction, in lines, obedience does not suffer."""
    fatigue: float = 0.01
    """Relative loss of obedience per further line, to at most a half."""
    insight: float = 0.25
    """The reflection model takes up an unmet rule, per rule and reply."""
    max_edits: int = 2
    """At most so many rules are taken up in one reply."""
    conflict: float = 0.12
    """A rule that is taken up is stated wrongly."""
    mend: float = 0.7
    """Where the instruction contradicts a rule that is taken up, the old line goes; otherwise both stand."""
    noise: float = 0.35
    """A line that only fits one of the examples is added, per reply."""
    duplicate: float = 0.1
    """A rule already stated is stated again in other words, per reply."""
    memory: int = 8
    """Instructions of up to this many lines are rewritten without loss."""
    forget: float = 0.015
    """Beyond that, each line is lost, per reply."""
    judge_error: float = 0.08
    """The judge gives another verdict than the right one, per reply."""
    unparsable: float = 0.015
    """A reflection, verdict or merge comes without its form, per reply."""
    comfortable_versions: int = 10
    """From up to so many versions all additions are merged; of more, the share that this number is of theirs."""

    def __post_init__(self) -> None:
        counts = {
            "rules": (1, len(HOUSE_STYLE)),
            "comfortable_lines": (0, None),
            "max_edits": (1, None),
            "comfortable_versions": (1, None),
            "memory": (0, None),
        }
        for entry in fields(self):
            low, high = counts.get(entry.name, (0, 1))
            value = getattr(self, entry.name)
            if value < low or (high is not None and value > high):
                limits = f"from {low} to {high}" if high is not None else f"of {low} or more"
                raise InputError(f"world rules: {entry.name} is {value}; choose a value {limits}")


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
}
"""The first four go from a world where almost every proposal helps to one where most do harm. In ``conflicting`` edits
contradict what stands already; in ``misjudged`` verdicts on stale edits are worse than chance.
"""
