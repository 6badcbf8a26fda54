"""What a browser posts to a live page: an act, and the name of who asks for it.

    {"act": {"act": "pause"}, "by": "ada"}

The answer is ``{"refused": null}`` with status 200 or, with status 409, a sentence in place of null. Everything else is
refused with a sentence as plain text.
"""

from __future__ import annotations

import getpass
import json
from dataclasses import dataclass
from functools import cache

from aiohttp import web

from flowevolve._util.console import shown
from flowevolve._util.errors import InputError
from flowevolve.core.acts import Act, read_act

MOST_BYTES = 1024 * 1024
"""The most bytes that may be posted; more are refused with status 413."""
LONGEST_NAME = 60
"""The most characters of the name of who acts."""
LONGEST_REFUSAL = 500
"""The most characters of what is said of a wrong act, as it may quote the act."""


@dataclass(frozen=True, slots=True)
class Posted:
    """An act, and who asks for it."""

    act: Act
    by: str


async def read_post(request: web.Request) -> Posted:
    """Raises: HTTPException saying what is wrong with what was posted."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="Post JSON, with the header Content-Type: application/json.")
    try:
        data = json.loads(await request.read())
    except web.HTTPRequestEntityTooLarge as error:
        error.text = f"At most {MOST_BYTES} bytes can be posted."
        raise
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest(text="What was posted is not JSON.") from None
    match data:
        case {"act": act, "by": str(by), **rest} if not rest:
            pass
        case {"act": act, **rest} if not rest:
            by = ""
        case _:
            raise web.HTTPBadRequest(text='Post an object with the field act and, if you like, by: {"act": {…}}.')
    name = shown(" ".join(by.split()))[:LONGEST_NAME] or login_name()
    try:
        return Posted(read_act(act), name)
    except InputError as error:
        raise web.HTTPBadRequest(text=shown(str(error))[:LONGEST_REFUSAL]) from None


@cache
def login_name() -> str:
    """The name of the user whose process this is."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"
