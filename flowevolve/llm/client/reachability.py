"""Whether a backend can be reached, and what it serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import anyio

from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve.core.model import (
    NO_MODEL_LIST,
    LLMError,
    RefusedError,
    ServerError,
    Transport,
    UnreachableError,
    WrongAddressError,
)
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.plugin_transports import within_protocol

CHECK_SECONDS = 30.0
"""The time limit for one backend's answer."""
_SHOWN = 20
"""How many of the models of a backend an error names."""


async def is_alive(transport: Transport) -> bool:
    """Whether the backend answers a request for its models, even if with a refusal. This uses no tokens."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            await within_protocol(transport.models(), tuple)
    except (UnreachableError, ServerError, TimeoutError):
        return False
    except LLMError:
        return True
    return True


async def check_models(transport: Transport, where: str, asked: Sequence[Model], note: Callable[[str], None]) -> None:
    """Check that the backend at ``where`` serves the models of ``asked``.

    ``note`` is called with what can't be known before the first call, because the backend has no list of models or the
    list need not be complete.

    Raises:
        BackendUnreachableError: if it gives no useful answer.
        BackendRefusedError: if it refuses us, or does not list a model that must be listed.
    """
    needs_list = any(model.must_have_list for model in asked)
    served = await _served_models(transport, where, note, needs_list=needs_list)
    if served is None:
        return
    for model in {(each.name, each.named_by): each for each in asked}.values():
        if _lists(served, model.name):
            continue
        there_are = f"it serves {', '.join(_closest_first(served, model.name)) or 'nothing'}"
        if model.must_be_listed:
            raise BackendRefusedError(
                f"{where} does not serve {model.name!r}, which {model.named_by} names; {there_are}. "
                f"Name one of these in {model.named_by}, or serve the model there"
            )
        note(f"{where} does not list {model.name!r}, which {model.named_by} names; {there_are}")


def without_full_stop(error: Exception) -> str:
    """The text of an error, to be followed by a full stop: the messages of many servers already end in one."""
    return str(error).removesuffix(".")


def _lists(served: Sequence[str], model: str) -> bool:
    """Whether a list contains a model: by its name, as Google or Ollama write it, or by a gateway's wildcard."""
    spellings = {model, f"models/{model}", f"{model}:latest"}
    return any(name in spellings or ("*" in name and fnmatchcase(model, name)) for name in served)


def _closest_first(served: Sequence[str], model: str) -> list[str]:
    """The names in a list, those most like the model's first. A long list is cut after `_SHOWN`."""
    names = list(dict.fromkeys([*get_close_matches(model, served), *served]))
    more = len(names) - _SHOWN
    return names if more <= 0 else [*names[:_SHOWN], f"and {more} more"]


async def _served_models(
    transport: Transport, where: str, note: Callable[[str], None], *, needs_list: bool
) -> tuple[str, ...] | None:
    """The models that the backend lists; None if it has no such list and need not have one."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            return await within_protocol(transport.models(), tuple)
    except WrongAddressError as error:
        raise BackendRefusedError(f"{where}: {error}") from error
    except RefusedError as error:
        if not needs_list and error.status in NO_MODEL_LIST:
            note(f"{where} has no list of models, so whether it serves what is asked for is seen at the first call")
            return None
        raise BackendRefusedError(
            f"{where} turned the request for its models away: {without_full_stop(error)}. "
            "Check the API key, and the base URL (most end in /v1)"
        ) from error
    except (LLMError, TimeoutError) as error:
        reason = without_full_stop(error) or f"nothing came back in {CHECK_SECONDS:.0f} s"
        raise BackendUnreachableError(
            f"{where} can't be used: {reason}. Start the server, or correct the base URL in the config"
        ) from error
