"""Asking a server for its list of models, and where its API is if it is not at the address that was given."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from flowevolve.core.model import NO_MODEL_LIST, LLMError, RefusedError, ServerError, WrongAddressError
from flowevolve.llm.transports import wire
from flowevolve.llm.transports.address import MODELS, Address

_VERSION = "/v1"
"""What the addresses of most servers end in."""


async def list_models(address: Address, get: Callable[[str], Awaitable[bytes]]) -> tuple[str, ...]:
    """The names of the models that a server has. ``get`` fetches what is at a path below the address.

    Raises:
        WrongAddressError: if there is no API at the address, but one below it.
        LLMError: as `flowevolve.core.model.Transport.models`.
    """
    try:
        return wire.model_names(await get(MODELS))
    except (RefusedError, ServerError) as error:
        if isinstance(error, RefusedError) and error.status not in NO_MODEL_LIST:
            raise
        if not await _is_below(address, get):
            raise
        right = address.base_url.rstrip("/") + _VERSION
        raise WrongAddressError(f"there is no API there, but at {right} there is: give that address instead") from None


async def _is_below(address: Address, get: Callable[[str], Awaitable[bytes]]) -> bool:
    if address.azure_api_version is not None or re.search(r"/v\d", urlsplit(address.base_url).path):
        return False
    try:
        wire.model_names(await get(_VERSION + MODELS))
    except LLMError:
        return False
    return True
