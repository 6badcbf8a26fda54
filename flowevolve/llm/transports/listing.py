"""Asks a server for its list of models and, if its API is not at the given address, whether it is just below."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from flowevolve.core.model import (
    NO_MODEL_LIST,
    LLMError,
    OverloadedError,
    RefusedError,
    ServerError,
    UnreachableError,
    WrongAddressError,
)
from flowevolve.llm.transports import wire
from flowevolve.llm.transports.address import MODELS, Address
from flowevolve.llm.transports.bounded import DEFAULT_BOUND, ReplyBound

_VERSION = "/v1"
"""What the addresses of most servers end in."""


async def list_models(
    address: Address, get: Callable[[str], Awaitable[bytes]], *, bound: ReplyBound = DEFAULT_BOUND
) -> tuple[str, ...]:
    """The names of the models that a server has. ``get`` fetches the body at a path below the address.

    Raises:
        WrongAddressError: if there is no API at the address, but one below it.
        LLMError: as `flowevolve.core.model.Transport.models`.
    """
    try:
        return wire.model_names(await get(MODELS), bound=bound)
    except (RefusedError, ServerError) as error:
        is_nowhere = error.status in NO_MODEL_LIST
        if isinstance(error, RefusedError) and not is_nowhere:
            raise
        if not await _is_below(address, get, bound, also_failing=is_nowhere):
            raise
        right = address.base_url.rstrip("/") + _VERSION
        raise WrongAddressError(
            f"there is no API at this address, but there is one at {right}; give that address instead"
        ) from None


async def _is_below(
    address: Address, get: Callable[[str], Awaitable[bytes]], bound: ReplyBound, *, also_failing: bool
) -> bool:
    """Whether there is an API at ``/v1`` below the address. With ``also_failing``, an API that answers with an error
    counts, too, as a gateway's does while its server is down.
    """
    if address.azure_api_version is not None or re.search(r"/v\d", urlsplit(address.base_url).path):
        return False
    try:
        wire.model_names(await get(_VERSION + MODELS), bound=bound)
    except (UnreachableError, OverloadedError, ServerError) as error:
        return also_failing and error.status is not None
    except LLMError:
        return False
    return True
