"""The two transports over HTTP, for tests that hold for both."""

from __future__ import annotations

from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport

Kind = type[OpenAITransport | AioHTTPTransport]
KINDS: list[Kind] = [OpenAITransport, AioHTTPTransport]
