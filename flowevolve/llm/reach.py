"""Whether a backend can be reached, and what it serves."""

from __future__ import annotations

import anyio

from flowevolve.errors import BackendRefusedError, BackendUnreachableError
from flowevolve.llm.types import LLMError, RefusedError, ServerError, Transport, UnreachableError

CHECK_SECONDS = 30.0
"""How long one backend is waited for."""


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


async def served_models(transport: Transport, where: str) -> tuple[str, ...]:
    """The models of the backend at ``where``.

    Raises:
        BackendUnreachableError: if it gives no useful answer.
        BackendRefusedError: if it turns us away.
    """
    try:
        with anyio.fail_after(CHECK_SECONDS):
            return await transport.models()
    except RefusedError as error:
        raise BackendRefusedError(
            f"{where} turned the request for its models away: {error}. "
            "Check the API key, and the base URL (most end in /v1)"
        ) from error
    except (LLMError, TimeoutError) as error:
        said = str(error) or f"nothing came back in {CHECK_SECONDS:.0f} s"
        raise BackendUnreachableError(
            f"{where} can't be used: {said}. Start the server, or correct the base URL in the config"
        ) from error
