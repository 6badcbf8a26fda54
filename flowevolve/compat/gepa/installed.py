"""Replaces gepa's own `optimize` for a while, so that libraries which look it up at each call run as a stream."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import gepa
import gepa.api

from flowevolve.compat.gepa import arguments
from flowevolve.compat.gepa.api import optimize as ours

_PLACES = (gepa, gepa.api)
_gepas = gepa.api.optimize
_replaced: list[Callable[..., object]] = []
"""While a block is open: what was in the places before."""
_lock = threading.Lock()
_blocks: list[Mapping[str, object]] = []
"""The settings of the blocks that are open, the newest last."""


@functools.wraps(_gepas)
def _optimize(*given: object, **named: object) -> object:
    with _lock:
        settings = _blocks[-1] if _blocks else None
    # It has the signature of the function that it replaces, and both functions check their arguments.
    run: Callable[..., object] = _gepas if settings is None else ours
    return run(*given, **{**(settings or {}), **named})


@contextmanager
def installed(
    *,
    adapter_concurrency: int = 1,
    chunk_size: int | None = None,
    reflection_concurrency: int | None = None,
    max_in_flight: int | None = None,
    mode: Literal["stream", "sync"] = "stream",
    staleness: str | None = None,
) -> Iterator[None]:
    """While this is open, `gepa.optimize` and `gepa.api.optimize` are ours, in every thread of the process.

    The settings are those of our `optimize` that gepa does not have. They apply to every call that does not give them
    itself. Blocks may be nested, and may overlap in threads: the settings of the one opened last apply, and when the
    last one is closed gepa's function is back. A library that imported the function before (``from gepa import
    optimize`` at its head) keeps gepa's.

    Raises:
        InputError: naming the number that is not whole, or is below 1.
    """
    block: dict[str, object] = {
        "adapter_concurrency": arguments.whole("adapter_concurrency", adapter_concurrency),
        "chunk_size": arguments.whole_or_none("chunk_size", chunk_size),
        "reflection_concurrency": arguments.whole_or_none("reflection_concurrency", reflection_concurrency),
        "max_in_flight": arguments.whole_or_none("max_in_flight", max_in_flight),
        "mode": mode,
        "staleness": staleness,
    }
    _open(block)
    try:
        yield
    finally:
        _close(block)


def _open(block: Mapping[str, object]) -> None:
    with _lock:
        if not _blocks:
            _replaced[:] = [place.__dict__["optimize"] for place in _PLACES]
            for place in _PLACES:
                place.__dict__["optimize"] = _optimize
        _blocks.append(block)


def _close(block: Mapping[str, object]) -> None:
    with _lock:
        _blocks[:] = [each for each in _blocks if each is not block]
        if not _blocks:
            for place, before in zip(_PLACES, _replaced, strict=True):
                if place.__dict__["optimize"] is _optimize:  # whoever has wrapped it since keeps their wrapper
                    place.__dict__["optimize"] = before
