"""The report on a run of mutation tests, as text and as JSON."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from flowevolve._util.intervals import mean_interval
from flowevolve._util.json_types import JSON
from tools.mutate.session import Outcome, Verdict

NOTICED: tuple[Outcome, ...] = ("killed", "timed out")


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts on at least one change."""

    verdicts: Sequence[Verdict]
    seed: int

    @property
    def share(self) -> float:
        """The share of changes that were noticed."""
        return _share(self.verdicts)

    @property
    def by_module(self) -> dict[str, list[Verdict]]:
        found: defaultdict[str, list[Verdict]] = defaultdict(list)
        for verdict in sorted(self.verdicts, key=_order):
            found[verdict.change.source.module].append(verdict)
        return dict(found)

    def __str__(self) -> str:
        low, high = mean_interval([float(each.outcome in NOTICED) for each in self.verdicts])
        lines = [f"{'module':44}changes  killed  timed out  survived  not reached"]
        for module, verdicts in self.by_module.items():
            counts = Counter(each.outcome for each in verdicts)
            lines.append(
                f"{module:44}{len(verdicts):7}{counts['killed']:8}{counts['timed out']:11}"
                f"{counts['survived']:10}{counts['not reached']:13}"
            )
        lines.append("")
        for each in (each for verdicts in self.by_module.values() for each in verdicts):
            if each.outcome not in NOTICED:
                tests = f"{each.tests} tests reach it" if each.tests else "no test reaches it"
                lines.append(f"{each.change}  ({tests})")
        noticed = sum(each.outcome in NOTICED for each in self.verdicts)
        lines.append(f"\n{noticed} of {len(self.verdicts)} changes were noticed:")
        lines.append(f"{self.share:.1%}, with a 95 % interval of {low:.1%} to {high:.1%}")
        return "\n".join(lines)

    def as_json(self) -> JSON:
        return {
            "seed": self.seed,
            "changes": len(self.verdicts),
            "noticed": sum(each.outcome in NOTICED for each in self.verdicts),
            "interval": list(mean_interval([float(each.outcome in NOTICED) for each in self.verdicts])),
            "verdicts": [
                {
                    "file": each.change.source.path,
                    "line": each.change.line,
                    "function": each.change.function,
                    "old": each.change.old_text,
                    "new": each.change.new_text,
                    "outcome": each.outcome,
                    "tests": each.tests,
                    "by": each.by,
                }
                for verdicts in self.by_module.values()
                for each in verdicts
            ],
        }


def _order(verdict: Verdict) -> tuple[str, int, str, str]:
    """The sort key of a verdict: where the change is and what it is. Verdicts arrive in the order in which processes
    end.
    """
    change = verdict.change
    return (*change.place, change.old_text, change.new_text)


def _share(verdicts: Sequence[Verdict]) -> float:
    return sum(each.outcome in NOTICED for each in verdicts) / len(verdicts)
