"""Digests that show whether texts and functions have changed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from types import CodeType


def text_digest(lines: Iterable[str]) -> str:
    """A short digest of texts, in their order."""
    digest = blake2b(digest_size=6)
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def code_digest(function: Callable[..., object]) -> str | None:
    """A digest of a function's code, without its comments and its place in a file; None if the code is not available.

    It begins with the version of Python, because each version compiles differently. Functions that this one calls are
    not included.
    """
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    return _of_this_python(_parts(code))


def modules_digest(kind: type) -> str | None:
    """A digest of the modules that define a class and its bases, without comments.

    Modules of ours and of Python itself don't count. None if there are no others, or their source is not available. It
    begins with the version of Python, as in `code_digest`.
    """
    names = dict.fromkeys(base.__module__ for base in kind.__mro__)
    others = [name for name in names if name.partition(".")[0] not in {"flowevolve", *sys.stdlib_module_names}]
    try:
        sources = [inspect.getsource(sys.modules[name]) for name in others]
        parts = [part for source in sources for part in _parts(compile(source, "", "exec"))]
    except (KeyError, OSError, TypeError, SyntaxError):
        return None
    return _of_this_python(parts) if parts else None


def _of_this_python(parts: Iterable[str]) -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}:{text_digest(parts)}"


def _parts(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))  # its own order differs from process to process
        else:
            yield repr(constant)
