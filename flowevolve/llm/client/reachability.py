"""Whether a backend can be reached, and what it serves."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import anyio

from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve._util.logger import logger
from flowevolve.core.model import NO_MODEL_LIST, LLMError, RefusedError, ServerError, Transport, UnreachableError
from flowevolve.llm.client.role import Role

CHECK_SECONDS = 30.0
"""The time limit for one backend's answer."""


async def is_alive(transport: Transport) -> bool:
    """Whether the backend answers a request for its models, be it with a refusal. This uses no tokens."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            await transport.models()
    except (UnreachableError, ServerError, TimeoutError):
        return False
    except LLMError:
        return True
    return True


async def check_models(transport: Transport, where: str, asked: Sequence[tuple[str, Role]]) -> None:
    """Check that the backend at ``where`` serves the models of ``asked``: pairs of a role's name and the role.

    The lists of remote APIs may be incomplete, so a model missing there is only logged as a warning.

    Raises:
        BackendUnreachableError: if it gives no useful answer.
        BackendRefusedError: if it refuses us, or does not list a model that must be listed.
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
        logger().warning("model.not_listed", backend=where, model=role.model, role=name, similar=similar)


async def _served_models(transport: Transport, where: str, *, lenient: bool) -> tuple[str, ...] | None:
    """The models that the backend lists; None if it has no such list and need not have one."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            return await transport.models()
    except RefusedError as error:
        if lenient and error.status in NO_MODEL_LIST:
            logger().warning("models.no_list", backend=where, error=str(error))
            return None
        raise BackendRefusedError(
            f"{where} turned the request for its models away: {error}. "
            "Check the API key, and the base URL (most end in /v1)"
        ) from error
    except (LLMError, TimeoutError) as error:
        reason = str(error) or f"nothing came back in {CHECK_SECONDS:.0f} s"
        raise BackendUnreachableError(
            f"{where} can't be used: {reason}. Start the server, or correct the base URL in the config"
        ) from error
