"""What somebody who watches a run can do to it while it goes on, and how such an act is read from JSON.

In JSON, an act is ``{"act": "<name>", ...}`` with the fields of its class. `flowevolve.Engine.act` carries it out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, get_args

from pydantic import Discriminator, TypeAdapter, ValidationError

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.registry import describe_fault, describe_validation
from flowevolve.core.budget import Budget
from flowevolve.core.event_body import Number, Plain, Text

LONGEST_COMMENT = 4_000
"""The most characters in a comment, as comments go into prompts."""


@dataclass(frozen=True)
class _Act(Plain):
    """The base of all acts. Their JSON begins with the name of the act."""

    def to_json(self) -> dict[str, JSON]:
        return {"act": vars(self)["act"], **super().to_json()}

    def check(self) -> None:
        """Raises: InputError if its fields make no sense together."""


@dataclass(frozen=True)
class Pause(_Act):
    """Open no new flows and, with ``items``, begin no work on waiting items either."""

    items: bool = False
    act: Literal["pause"] = "pause"


@dataclass(frozen=True)
class Unpause(_Act):
    """End a pause."""

    act: Literal["unpause"] = "unpause"


@dataclass(frozen=True)
class Stop(_Act):
    """Open no more flows. Those that are open may take the run's drain time to end."""

    act: Literal["stop"] = "stop"


@dataclass(frozen=True)
class RaiseBudget(_Act):
    """Raise limits of the budget.

    ``limits`` has names and values as in the table ``[budget]`` of a configuration. The values are the new limits, not
    amounts to add. Times (hours, minutes, seconds) add up, and their sum replaces the time limit that the run had.
    """

    limits: Mapping[str, Number]
    act: Literal["raise_budget"] = "raise_budget"

    def check(self) -> None:
        if not self.limits:
            raise InputError('raise_budget: no limit is given; give one or more, such as {"minutes": 90}')
        if not (_all_finite(self.limits) and _all_finite(self.by_name())):
            raise InputError(f"raise_budget: a limit in {self.limits} is no finite number; give numbers")

    def by_name(self) -> Mapping[str, float]:
        """The limits in the form of `Budget.by_name`.

        Raises:
            InputError: if a name is not that of a limit, or a value is not one that its limit can have.
        """
        try:
            return Budget.model_validate(dict(self.limits)).by_name()
        except ValidationError as error:
            raise InputError(f"raise_budget: {describe_validation(error, known=list(Budget.model_fields))}") from None


@dataclass(frozen=True)
class Inject(_Act):
    """Add a candidate with these texts by component; ``parent`` is the id of the candidate that they were edited from.

    Components that are left out keep the parent's text. Without a parent, all have to be given.
    """

    texts: Mapping[Text, Text]
    parent: str | None = None
    act: Literal["inject"] = "inject"

    def check(self) -> None:
        if not self.texts:
            raise InputError("inject: no text is given; give that of one component or more")
        for name, text in self.texts.items():
            if not text.strip():
                raise InputError(f"inject: the text of {name!r} is empty; give one")


@dataclass(frozen=True)
class Comment(_Act):
    """Comment on a candidate or on an example, given by its id. Reflections read the text as feedback."""

    text: Text
    candidate: str | None = None
    example: Text | None = None
    act: Literal["comment"] = "comment"

    def check(self) -> None:
        if not self.text.strip():
            raise InputError("comment: the text is empty; write what you want to say")
        if len(self.text) > LONGEST_COMMENT:
            raise InputError(
                f"comment: the text has {len(self.text):,} characters, but can have at most {LONGEST_COMMENT:,}"
            )
        if (self.candidate is None) == (self.example is None):
            raise InputError("comment: a comment is about either a candidate or an example; give the id of one of them")


@dataclass(frozen=True)
class Veto(_Act):
    """Take a candidate out of the pool: it is never a parent and never the best. Its descendants stay."""

    candidate: str
    act: Literal["veto"] = "veto"


@dataclass(frozen=True)
class Approve(_Act):
    """Take back the veto of a candidate, or let a candidate that a stage has turned down go on to validation."""

    candidate: str
    act: Literal["approve"] = "approve"


AnyAct = Pause | Unpause | Stop | RaiseBudget | Inject | Comment | Veto | Approve
Act = Annotated[AnyAct, Discriminator("act")]
"""One of the acts, which pydantic tells apart by their field ``act``."""
NAMES: tuple[str, ...] = tuple(each.__dataclass_fields__["act"].default for each in get_args(AnyAct))
"""The names of all acts, as JSON has them."""


def read_act(data: object) -> Act:
    """Read an act from its JSON form.

    Raises:
        InputError: naming what is wrong with it.
    """
    if not isinstance(data, Mapping) or data.get("act") not in NAMES:
        given = data.get("act") if isinstance(data, Mapping) else data
        raise InputError(f"act: {given!r} is no act; give an object with the field act, one of {', '.join(NAMES)}")
    try:
        act = _reader().validate_python(data)
    except ValidationError as error:
        wrong = (describe_fault(each, ".".join(map(str, each["loc"][1:]))) for each in error.errors())
        raise InputError(f"{data['act']}: {'; '.join(wrong)}") from None
    act.check()
    return act


def checked(act: object, by: object) -> Act:
    """Check an act that a program asks for, whose fields nobody has checked yet, and ``by``, which says who asks.

    Raises:
        InputError: naming what is wrong with either.
    """
    if not isinstance(act, _Act):
        raise InputError(f"act: {act!r:.80} is no act; give one, such as flowevolve.Pause()")
    if not isinstance(by, str):
        raise InputError(f"{vars(act)['act']}: by is {by!r:.80}; say who asks for it, as a text")
    return read_act(act.to_json())


def _all_finite(limits: Mapping[str, Number]) -> bool:
    """Whether floats can hold all limits. ``math.isfinite`` would raise an error for integers that are too large."""
    return all(abs(limit) <= sys.float_info.max for limit in limits.values())


@cache
def _reader() -> TypeAdapter[Act]:
    return TypeAdapter(Act)
