"""GEPA's merge: join what two lineages learnt since their common ancestor (arXiv 2507.19457, appendix F).

These are pure functions over an archive; the select stage decides when to merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Candidate

Lookup = Callable[[str], Candidate]


@dataclass(frozen=True, slots=True)
class Merge:
    """Two candidates, an ancestor that they share, and the artifact that joins them."""

    first: Candidate
    second: Candidate
    ancestor: Candidate
    artifact: Artifact


def ancestors(candidate: Candidate, lookup: Lookup) -> frozenset[str]:
    """The ids of all candidates that this one descends from."""
    found: set[str] = set()
    unseen = list(candidate.parents)
    while unseen:
        name = unseen.pop()
        if name not in found:
            found.add(name)
            unseen.extend(lookup(name).parents)
    return frozenset(found)


def find_merge(
    candidates: Sequence[Candidate], lookup: Lookup, done: frozenset[tuple[str, str, str]], random: Random
) -> Merge | None:
    """A merge worth trying among these candidates, or None.

    A pair qualifies if neither descends from the other and they share an ancestor that scores no more than either and
    from which at least one component was changed by only one of them. ``done`` holds the id triples tried before.
    """
    lineage = {candidate.id: ancestors(candidate, lookup) for candidate in candidates}
    holders: dict[tuple[str, str], set[str]] = {}
    for name in frozenset[str]().union(*lineage.values()):
        for text in lookup(name).artifact.items():
            holders.setdefault(text, set()).add(name)
    pairs = list(combinations(candidates, 2))
    random.shuffle(pairs)
    for first, second in pairs:
        if first.id in lineage[second.id] or second.id in lineage[first.id]:
            continue
        alike = set[str]().union(*(holders.get(text, ()) for text in _different(first, second)))
        shared = [lookup(name) for name in sorted(alike & lineage[first.id] & lineage[second.id])]
        fit = [a for a in shared if _qualifies(a, first, second) and (first.id, second.id, a.id) not in done]
        if fit:
            weights = [max(ancestor.mean_score, 1e-9) for ancestor in fit]
            ancestor = random.choices(fit, weights)[0]
            return Merge(first, second, ancestor, join(first, second, ancestor))
    return None


def _different(first: Candidate, second: Candidate) -> Iterator[tuple[str, str]]:
    """The components in which the two differ, each with the text of either. An ancestor that qualifies has at least one
    of these texts.
    """
    for name, text in first.artifact.items():
        if text != second.artifact[name]:
            yield name, text
            yield name, second.artifact[name]


def _qualifies(ancestor: Candidate, first: Candidate, second: Candidate) -> bool:
    if len(ancestor.scores) < len(first.scores):
        return False  # its evaluation was stopped: its mean is over other examples
    if ancestor.mean_score > min(first.mean_score, second.mean_score):
        return False
    base, a, b = ancestor.artifact, first.artifact, second.artifact
    return any((a[name] == base[name]) != (b[name] == base[name]) for name in base)


def join(first: Candidate, second: Candidate, ancestor: Candidate) -> Artifact:
    """Take each component from the candidate that changed it, or from the better one if both did."""
    better = first if first.mean_score >= second.mean_score else second
    texts = {
        name: second.artifact[name]
        if first.artifact[name] == text
        else first.artifact[name]
        if second.artifact[name] == text
        else better.artifact[name]
        for name, text in ancestor.artifact.items()
    }
    return ancestor.artifact.replace(**texts)


def stratified_ids(first: Candidate, second: Candidate, size: int, random: Random) -> tuple[str, ...]:
    """Ids of validation examples to test a merge on: equal shares, as far as possible, of those where the first
    candidate wins, where the second wins, and where they tie.
    """
    shared = [name for name in first.scores if name in second.scores]
    strata = (
        [name for name in shared if first.scores[name] > second.scores[name]],
        [name for name in shared if first.scores[name] < second.scores[name]],
        [name for name in shared if first.scores[name] == second.scores[name]],
    )
    share = -(-size // len(strata))
    chosen: list[str] = []
    for stratum in strata:
        chosen += random.sample(stratum, min(share, len(stratum), size - len(chosen)))
    rest = [name for name in shared if name not in chosen]
    chosen += random.sample(rest, min(size - len(chosen), len(rest)))
    return tuple(chosen)
