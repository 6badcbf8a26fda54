"""Bandits: which model of an ensemble is asked next, judging by the results of earlier calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

from flowevolve.llm.client.ensemble import Arm


@dataclass(frozen=True, slots=True)
class UCB:
    """UCB1 (Auer, Cesa-Bianchi and Fischer, Machine Learning 47, 2002): the highest mean gain plus sqrt(2 ln n / n_i).

    n_i counts a model's calls as soon as they are drawn, and n those of all models, so that calls whose outcome is
    still open spread over the models. If the cost of every model is known, the sum is divided by the model's mean
    dollars per call, as in fractional KUBE (Tran-Thanh, Chapman, Rogers and Jennings, AAAI 2012). This is not done if a
    model is free: per dollar, no other would ever be drawn, however little the free one gains. Every model is drawn
    once first; of equals, the first is chosen.
    """

    def choose(self, arms: Sequence[Arm], draw: float) -> int:
        drawn = sum(arm.drawn for arm in arms)
        per_dollar = all(arm.dollars > 0 for arm in arms)

        def promise(place: int) -> float:
            arm = arms[place]
            if not arm.drawn:
                return float("inf")
            mean = arm.gain / arm.judged if arm.judged else 0.0
            most = mean + sqrt(2 * log(drawn) / arm.drawn)
            return most * arm.paid / arm.dollars if per_dollar else most

        return max(range(len(arms)), key=promise)
