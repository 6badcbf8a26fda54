"""The form of a verifier: a check of a response against one constraint, and the constraint worded as an instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flowevolve._util.json_types import JSON

Kwargs = Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Verifier:
    """One kind of constraint, named as in IFEval or IFBench (``group:name``).

    ``check(response, kwargs)`` says whether the response meets it. ``describe(kwargs)`` is an imperative sentence that
    tells a model what to do ("Do not use commas."). It names every parameter, so that it is enough to meet the
    constraint.
    """

    id: str
    check: Callable[[str, Kwargs], bool]
    describe: Callable[[Kwargs], str]
