"""Why a reply, or a part of it, was not accepted, and the error that says so."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a reply, or a part of it, was not accepted."""

    EMPTY = "empty"
    ONLY_THINKING = "only_thinking"
    DECLINED = "declined"
    MISSING = "missing"
    """The part that was asked for is not in the reply in any form."""
    INCOMPLETE = "incomplete"
    """The reply breaks off."""
    AMBIGUOUS = "ambiguous"
    """It can be read in two ways that mean different things."""
    WRONG_FORM = "wrong_form"
    """The part that was asked for is there, but it lacks something or is of the wrong kind."""
    TOO_LONG = "too_long"
    ELIDED = "elided"
    """Parts of a program are left out, with a remark in their place."""
    DOES_NOT_COMPILE = "does_not_compile"
    FROZEN = "frozen"
    """It changes text that must not change."""
    NOT_FOUND = "not_found"
    """The text that an edit searches for is not there."""
    SEVERAL_PLACES = "several_places"
    """The text that an edit searches for is there more than once."""
    NOTHING_TO_SEARCH = "nothing_to_search"
    UNKNOWN_FILE = "unknown_file"
    NO_OP = "no_op"
    """It changes nothing."""
    DRAFT = "draft"
    """The reply itself calls this part a draft, next to the part that is meant."""


class UnparsableReplyError(ValueError):
    """A model's reply does not have the form that was asked for. The message can be sent back to the model."""

    def __init__(self, message: str, reason: Reason = Reason.WRONG_FORM) -> None:
        super().__init__(message)
        self.reason = reason
