"""Maps each way in which a call can fail to one of the error classes in `flowevolve.core.model`."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from types import TracebackType

import aiohttp
from aiohttp.http import HttpProcessingError

from flowevolve._util.clock import running_loop
from flowevolve._util.errors import reason_of
from flowevolve._util.json_text import read_json
from flowevolve._util.json_types import JSON
from flowevolve._util.secrets import redacted
from flowevolve.core.model import (
    LLMError,
    OutOfCreditError,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
)
from flowevolve.llm.transports.bounded import DEFAULT_BOUND, ReplyBound
from flowevolve.llm.transports.request_form import refused_field

# How much of an unexpected answer goes into an error message, in characters.
_SHOWN = 500

# How much of it is searched for keys, in bytes: more than what is shown plus the length of a key that begins there.
_READ = 2**14

_UNKNOWN_MODEL = re.compile(
    r"(unknown|invalid|no such) model\b|\bmodel\b.{0,200}?\b(does not exist|doesn't exist|not found)|not a valid model",
    re.IGNORECASE | re.DOTALL,
)

# How the message of an answer with status 400 begins if the key is at fault, as with Google.
_BAD_KEY = re.compile(r"API key (not valid|expired)|(invalid|expired) API key", re.IGNORECASE)

# OpenAI's codes for an account without money or quota.
_NO_CREDIT = ("insufficient_quota", "billing_not_active", "billing_hard_limit_reached")

# Errors that mean no answer: no connection, a broken one, an invalid address, and circular redirects.
_UNANSWERED = (
    aiohttp.ClientConnectionError,
    aiohttp.ClientPayloadError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
    aiohttp.TooManyRedirects,
    OSError,
)


def decode(content: bytes, bound: ReplyBound = DEFAULT_BOUND) -> JSON:
    """Decode a body, or a part of one, as JSON.

    Raises:
        ServerError: if it is not JSON, or is nested too deeply to be read.
        RejectedError: if there are too many values in it.
    """
    bound.check_values(content)
    try:
        return read_json(content)
    except RecursionError as error:
        raise ServerError(f"the answer is nested too deeply to be read: {start_of(content)!r}") from error
    except ValueError as error:
        raise ServerError(f"the answer is not JSON: {start_of(content)!r}") from error


class limited:  # noqa: N801 - reads as a function; a class, as a generator costs more and every call comes here
    """An async context manager that limits the time of a call over aiohttp, and turns its exceptions into `LLMError`.

    The limit works like that of `asyncio.timeout`, at half the cost.

    Raises:
        UnreachableError: if ``seconds`` pass, or there was no answer.
        ServerError: if the answer is not HTTP.
        RejectedError: if the request can't be sent, for example because it can't be encoded.
    """

    __slots__ = ("_cancelling", "_is_over", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False

    async def __aenter__(self) -> None:
        loop = running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._timer = loop.call_at(loop.time() + self._seconds, self._end)

    def _end(self) -> None:
        self._is_over = True
        self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._is_over:
            cancelled_by_others = self._task.uncancel() > self._cancelling
            if isinstance(error, asyncio.CancelledError) and not cancelled_by_others:
                raise UnreachableError(f"no complete answer within {self._seconds:g} s") from error
        failure = None if error is None else _failure(error)
        if failure is not None:
            raise failure from error


def _failure(error: BaseException) -> LLMError | None:
    """The error for an exception from aiohttp or from encoding the request; None for any other exception."""
    match error:
        case _ if isinstance(error, _UNANSWERED):
            return unreachable(error)
        case aiohttp.ClientHttpProxyError():  # its text has the proxy's address, with the password
            return UnreachableError(f"no connection: the proxy answers {error.status} {error.message}")
        case aiohttp.ClientResponseError():  # its text has the URL, and the beginning of what can't be read
            return ServerError(f"the answer is not HTTP: {error.message.partition(': b')[0]}")
        case HttpProcessingError():
            return ServerError(f"the answer is not HTTP: {error.message.partition(': b')[0]}")
        case aiohttp.ClientError():
            return ServerError(f"the answer is not HTTP: {error}")
        case ValueError():
            return RejectedError(f"the request can't be sent: {error}")
    return None


def unreachable(cause: BaseException) -> UnreachableError:
    """The error of a call that got no answer because of ``cause``."""
    return UnreachableError(f"no connection: {_why_unconnected(cause)}")


def _why_unconnected(cause: BaseException) -> str:
    """What the system says, without what aiohttp adds to it, and of which address."""
    found: BaseException | None = cause
    while found is not None and not isinstance(found, aiohttp.ClientConnectorError):
        found = found.__cause__  # the OpenAI SDK raises an error of its own from it
    if found is None or isinstance(found, aiohttp.ClientSSLError):
        return str(cause)
    error = found.os_error
    if isinstance(error, ConnectionError) and error.errno is not None:
        said = os.strerror(error.errno)  # asyncio's text has the address, and no reason
    else:
        said = reason_of(error)
    of_proxy = "proxy " if isinstance(found, aiohttp.ClientProxyConnectionError) else ""
    return f"{said} ({of_proxy}{found.host}:{found.port})"


def status_error(status: int, reason: str, headers: Mapping[str, str], content: bytes) -> LLMError:
    """The error for an answer with a failure status. ``headers`` are looked up in lower case."""
    problem = _problem(content)
    # Keys are removed before the text is cut, as a part of a key would not be found.
    message = f"HTTP {status}: {redacted(_text(problem.get('message'), start_of(content)).strip())[:_SHOWN] or reason}"
    match status:
        case 402:
            return OutOfCreditError(message, status=status)
        case 400 | 403 | 429 if _is_out_of_credit(problem, message):
            return OutOfCreditError(message, status=status)
        case 401 | 403 | 404 | 405:
            return RefusedError(message, status=status)
        case 400 if _names_unknown_model(problem, message) or _BAD_KEY.match(_text(problem.get("message"), "")):
            return RefusedError(message, status=status)
        case 429 | 503 | 529:  # the last is Anthropic's
            return OverloadedError(message, status=status, retry_after=retry_after_seconds(headers), headers=headers)
        case 408 | 502 | 504 | 520 | 521 | 522 | 523 | 524:  # all but 408 come from a proxy whose server is gone
            return UnreachableError(message, status=status, retry_after=retry_after_seconds(headers))
        case 400 | 422 if refused := refused_field(problem, message, status):
            return refused
        case _ if 400 <= status < 500:
            return RejectedError(message, status=status)
        case _:
            return ServerError(message, status=status, retry_after=retry_after_seconds(headers))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The wait in seconds that ``retry-after-ms`` or else ``Retry-After`` asks for; None if neither is there.

    ``Retry-After`` is in seconds, or a date that is compared with the server's own clock (``Date``).
    """
    asked = headers.get("retry-after", "")
    seconds = _number(headers.get("retry-after-ms", "")) / 1000
    if not isfinite(seconds):
        seconds = _number(asked)
    if not isfinite(seconds):
        try:
            seconds = (parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
        except (ValueError, TypeError, OverflowError):  # no date, or only one of the two has a time zone
            return None
    return max(0.0, seconds)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def start_of(content: bytes) -> str:
    """The beginning of a body, for an error message, without keys."""
    return redacted(content[:_READ].decode("utf-8", "replace"))[:_SHOWN]


def _text(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


def _problem(content: bytes) -> dict[str, JSON]:
    """The description of an error in an answer: OpenAI puts it under ``error``, others at the top level."""
    try:
        body = decode(content)
    except ServerError:
        return {}
    match body:
        case {"error": dict(problem)} | [{"error": dict(problem)}, *_] | dict(problem):  # the second is Google's
            return problem
    return {}


def _is_out_of_credit(problem: Mapping[str, JSON], message: str) -> bool:
    """Whether an answer says, in the words of OpenAI or Anthropic, that the account has no money or quota left."""
    return any(problem.get(key) in _NO_CREDIT for key in ("code", "type")) or "credit balance is too low" in message


def _names_unknown_model(problem: Mapping[str, JSON], message: str) -> bool:
    return (
        problem.get("code") == "model_not_found"
        or problem.get("param") == "model"
        or _UNKNOWN_MODEL.search(message) is not None
    )
