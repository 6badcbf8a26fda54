"""A backend, as docs of 0.1 say how to write one: what it is derived from has moved since."""

from __future__ import annotations

from flowevolve.llm.types import Transport


class Mine(Transport):
    pass
