"""Whether a backend can be reached, and what it serves."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import anyio
import structlog

from flowevolve.errors import BackendRefusedError, BackendUnreachableError
from flowevolve.llm.role import Role
from flowevolve.llm.types import LLMError, RefusedError, ServerError, Transport, UnreachableError

CHECK_SECONDS = 30.0
"""How long one backend is waited for."""
NO_LIST = (404, 405)
"""Statuses by which an API says that it does not list its models."""


async def is_alive(transport: Transport) -> bool:
    """Whether it answers when asked for its models, if only to turn us away; costs no tokens."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            await transport.models()
    except (UnreachableError, ServerError, TimeoutError):
        return False
    except LLMError:
        return True
    return True


async def check_models(transport: Transport, where: str, asked: Sequence[tuple[str, Role]]) -> None:
    """See that the backend at ``where`` serves the models that are ``asked`` of it, each with the role that does.

    What a remote API's list lacks may still be served: that is a warning, and the first call will tell.

    Raises:
        BackendUnreachableError: if it gives no useful answer.
        BackendRefusedError: if it turns us away, or a model that must be listed is not.
    """
    lenient = not any(role.must_be_listed for _, role in asked)
    served = await _served_models(transport, where, lenient=lenient)
    if served is None:
        return
    for name, role in asked:
        if role.model in served or f"models/{role.model}" in served:  # Google's API lists its models so
            continue
        if role.must_be_listed:
            raise BackendRefusedError(
                f"{where} does not serve {role.model!r}, the model of role {name!r}; "
                f"it serves {', '.join(served) or 'nothing'}. Set the role's model to one of these, "
                "or serve the model there"
            )
        similar = get_close_matches(role.model, served)
        structlog.get_logger("flowevolve").warning(
            "model.not_listed", backend=where, model=role.model, role=name, similar=similar
        )


async def _served_models(transport: Transport, where: str, *, lenient: bool) -> tuple[str, ...] | None:
    """None if it has no list of its models, and need not."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            return await transport.models()
    except RefusedError as error:
        if lenient and error.status in NO_LIST:
            structlog.get_logger("flowevolve").warning("models.no_list", backend=where, error=str(error))
            return None
        raise BackendRefusedError(
            f"{where} turned the request for its models away: {error}. "
            "Check the API key, and the base URL (most end in /v1)"
        ) from error
    except (LLMError, TimeoutError) as error:
        said = str(error) or f"nothing came back in {CHECK_SECONDS:.0f} s"
        raise BackendUnreachableError(
            f"{where} can't be used: {said}. Start the server, or correct the base URL in the config"
        ) from error
