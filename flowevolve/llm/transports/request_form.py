"""The form of requests that a model accepts, where it is not the usual one.

OpenAI's reasoning models want ``max_completion_tokens`` instead of ``max_tokens`` and ``developer`` instead of
``system``, and refuse temperature and the like. They are recognized by name. What any other model refuses (a deployment
with a name of its own, a server without sampling seeds) is learnt from its answer: the request is changed accordingly
and sent again within the same call, and later requests to this model are changed in the same way from the start.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from flowevolve._util.clock import now
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import logger
from flowevolve.core.model import RejectedError
from flowevolve.core.model_families import family_of

T = TypeVar("T")
Body = Mapping[str, JSON]

_LIMITS = ("max_tokens", "max_completion_tokens")
_ROLES = ("system", "developer", "user")
"""Roles that system messages may have, in the order in which they are tried."""
_SAMPLING = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias"})
_DISPENSABLE = _SAMPLING | {"seed", "priority", "stream_options"}
"""Fields that a request can do without. If any other is refused, the user gets the error and has to correct it."""


class RefusedFieldError(RejectedError):
    """The server does not accept a field of the request, or its value. It has generated nothing."""

    def __init__(self, message: str, *, status: int, field: str) -> None:
        super().__init__(message, status=status)
        self.field = field
        """The name of the field, or ``role`` for the role of a message."""


@dataclass(frozen=True, slots=True)
class RequestForm:
    """How the bodies of requests are changed for one model."""

    limits: tuple[str, ...] = _LIMITS
    """The field that bounds the length of the answer, and the fields to try instead if that is refused."""
    roles: tuple[str, ...] = _ROLES
    """The role of system messages, and the roles to try instead if that is refused."""
    left_out: frozenset[str] = frozenset()
    unless_effort: str | None = None
    """Nothing is left out of a request whose ``reasoning_effort`` is this."""

    def applied(self, body: Body) -> dict[str, JSON]:
        """The body in this form."""
        changed = dict(body)
        if self.unless_effort is None or body.get("reasoning_effort") != self.unless_effort:
            for name in self.left_out:
                changed.pop(name, None)
        for other in _LIMITS:
            if other in changed and other != self.limits[0]:
                changed.setdefault(self.limits[0], changed.pop(other))
        messages = changed.get("messages")
        if self.roles[0] != _ROLES[0] and isinstance(messages, list):
            changed["messages"] = [self._message(message) for message in messages]
        return changed

    def without(self, field: str) -> RequestForm | None:
        """The form to try once this field was refused; None if there is none."""
        if field in self.limits and len(self.limits) > 1:
            return replace(self, limits=self.limits[1:])
        if field == "role" and len(self.roles) > 1:
            return replace(self, roles=self.roles[1:])
        if field in _DISPENSABLE and (field not in self.left_out or self.unless_effort is not None):
            return replace(self, left_out=self.left_out | {field}, unless_effort=None)
        return None

    def _message(self, message: JSON) -> JSON:
        if isinstance(message, dict) and message.get("role") == _ROLES[0]:
            return {**message, "role": self.roles[0]}
        return message


def form_by_name(model: str) -> RequestForm:
    """The form that a model of this name is known to require."""
    family = family_of(model)
    if family is None or not family.is_openai_reasoning:
        return RequestForm()
    takes_sampling = family.switch_off == {"reasoning_effort": "none"}
    return RequestForm(
        tuple(reversed(_LIMITS)),
        ("developer", "system", "user"),
        _SAMPLING,
        unless_effort="none" if takes_sampling else None,
    )


class RequestForms:
    """The forms that the models at one address require, as far as they are known."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._forms: dict[str, RequestForm] = {}

    async def send(self, model: str, body: Body, timeout: float, send: Callable[[Body, float], Awaitable[T]]) -> T:
        """The answer to a body in the form that the model requires. ``send`` sends a body within a number of seconds.

        If the server refuses a field, the body is sent again at once, with that field changed or left out.

        Raises:
            LLMError: as ``send``.
        """
        deadline, left = now() + timeout, timeout
        while True:
            form = self._forms.get(model)
            if form is None:
                form = self._forms[model] = form_by_name(model)
            try:
                return await send(form.applied(body), left)
            except RefusedFieldError as refused:
                known_by_now = self._forms[model] != form  # another call was refused for it meanwhile
                if not known_by_now and not self._learn(model, form, refused):
                    raise RejectedError(str(refused), status=refused.status) from None
                left = deadline - now()

    def _learn(self, model: str, form: RequestForm, refused: RefusedFieldError) -> bool:
        """Change the form of a model by what it refused; returns whether there is another form to try."""
        changed = form.without(refused.field)
        if changed is None:
            return False
        self._forms[model] = changed
        logger().info("request.adapted", backend=self._where, model=model, refused=refused.field, why=str(refused))
        return True


_REFUSALS = tuple(
    re.compile(pattern)
    for pattern in (
        r"Unsupported (?:parameter|value): '([^']+)'",  # OpenAI, Azure
        r"[Uu]nrecognized request arguments? supplied: (\w+)",  # OpenAI
        r"[Uu]nknown parameter: '([^']+)'",  # OpenAI
        r'Unknown name \\?"(\w+)\\?"',  # Google
        r"property '([^']+)' is unsupported",  # Groq
    )
)
"""The messages in which servers refuse a field; each pattern captures the field's name."""
_ROLE = re.compile(r"(messages(\[\d+\]|\.\d+)\.)?role")


def refused_field(problem: Mapping[str, JSON], message: str, status: int) -> RefusedFieldError | None:
    """The error for a request that was answered with 400 or 422 for one of its fields; None if that was not the reason.

    ``problem`` is the error's description in the answer: OpenAI's names the field in ``param``, Mistral's in the
    ``loc`` of its ``detail``.
    """
    found = next((found for pattern in _REFUSALS if (found := pattern.search(message))), None)
    field = None if found is None else found[1]
    match problem:
        case {"detail": [{"type": "extra_forbidden", "loc": ["body", str(place), *_]}, *_]}:
            field = place
        case {"code": "unsupported_parameter" | "unsupported_value" | "unknown_parameter", "param": str(place)}:
            field = place
    if field is None:
        return None
    return RefusedFieldError(message, status=status, field="role" if _ROLE.fullmatch(field) else field)
