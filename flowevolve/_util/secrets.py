"""API keys: where they are read from, and how they are kept out of everything that is written.

A key comes from the environment or from a file. Once it was read, `redacted` removes it from any text. The message of
every failed call goes through `redacted` (`flowevolve.core.model.LLMError`).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.logger import logger

OPENAI_HOST, OPENAI_VARIABLE = "api.openai.com", "OPENAI_API_KEY"
"""OpenAI's host, and the default environment variable of its key, which is sent to no other host by default."""

AZURE_VARIABLE = "AZURE_OPENAI_API_KEY"
"""The default environment variable of the key for Azure's form of the API, whatever the resource is called."""

KEY_PLACE = "{key}"
"""The placeholder for the key in a base URL, for servers that want the key in the path."""

HIDDEN = "[key]"
"""The text that replaces a key."""
SHORTEST = 8
"""The length from which a key is hidden. Shorter ones are words such as ``none``, for servers without keys."""
SURELY_A_KEY = 20
"""The length from which a key is also hidden in a model's answers. A shorter one may be a word that it means."""

HEADERS_VARIABLE = "OPENAI_CUSTOM_HEADERS"
"""The environment variable with headers of a user's own, which OpenAI's SDK reads."""

_A_KEY = re.compile(r"(key|token|secret|passw(or)?d|auth|authorization|bearer|cookie|credentials?)$", re.IGNORECASE)
_NO_KEY = re.compile(r"(cache|sort|stop|eos|bos|pad|wc)[_-]?(key|token)$", re.IGNORECASE)
"""Names that end like a key's name but mean something else, such as ``prompt_cache_key`` or Slurm's ``wckey``."""

_LOOKS_LIKE_A_KEY = re.compile(
    r"((sk|pk|rk|gsk|xai|nvapi)[-_]|(hf|ghp)_)(?=.*\d)[\w-]{16,}"  # the prefixes that providers use
    r"|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9]{32,}"
)

# One list for the whole process, because a key is a secret wherever its text turns up. The longest keys come first.
_known: list[str] = []


def key_for(url: str, variable: str | None, file: Path | None) -> str | None:
    """The key for the server at ``url``: from the variable or file given, or for OpenAI's own servers the default one.

    Raises:
        InputError: as `read_key`.
    """
    if variable is not None or file is not None:
        return read_key(variable or OPENAI_VARIABLE, file)
    if is_openais(url):
        return read_key(OPENAI_VARIABLE, None)
    address = urlsplit(url)
    if address.scheme == "https" and os.environ.get(OPENAI_VARIABLE):
        mend = f"name the variable in api_key_env if its key is meant for {address.hostname}"
        logger().warning("key.not_sent", variable=OPENAI_VARIABLE, mend=mend)
    return None


def missing_key(url: str, variable: str | None, file: Path | None) -> str | None:
    """The environment variable that should hold the key for the server at ``url``, if it is not set (see `key_for`)."""
    if file is not None:
        return None
    expected = variable or (OPENAI_VARIABLE if is_openais(url) else None)
    return expected if expected is not None and not os.environ.get(expected, "").strip() else None


def is_openais(url: str) -> bool:
    """Whether a URL is on one of OpenAI's own servers."""
    address = urlsplit(url)
    return address.scheme == "https" and f".{address.hostname}".endswith(f".{OPENAI_HOST}")


def read_key(variable: str, file: Path | None) -> str | None:
    """The key in ``file`` or, if that is None, in the environment variable; None if the variable is not set or empty.

    Logs a warning if other users may read the file.

    Raises:
        InputError: if the file can't be read or is empty, or what was found can't be a key.
    """
    if file is None:
        source, key = f"the environment variable {variable}", os.environ.get(variable, "").strip()
        if not key:
            return None
    else:
        source, key = str(file), _content(file)
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError(f"{source} holds no API key; a key is one line of printable ASCII without spaces")
    hide(key)
    return key


def hide(key: str) -> None:
    """Have `redacted` remove this key from now on, also in its forms inside JSON strings, URLs and host names."""
    if len(key) >= SHORTEST:
        forms = {key, json.dumps(key)[1:-1], quote(key), quote(key, safe="")}
        if len(key) >= SURELY_A_KEY:
            forms.add(key.lower())
        _known[:] = sorted(forms.union(_known), key=lambda form: (-len(form), form))


def hide_keys_of_environment() -> None:
    """Have `redacted` remove all keys in the environment, for libraries that read their own keys from there."""
    for name, value in os.environ.items():
        if _A_KEY.search(name) and not _NO_KEY.search(name):
            hide(value)


def hide_headers_of_environment() -> None:
    """Have `redacted` remove the values of the headers that OpenAI's SDK adds to every request, from its variable."""
    for line in os.environ.get(HEADERS_VARIABLE, "").splitlines():
        for word in line.partition(":")[2].split():
            hide(word)


def key_in_path(path: str) -> bool:
    """Whether a part of a URL's path looks like a key: long and without a word in it."""
    return any(_LOOKS_LIKE_A_KEY.fullmatch(part) for part in unquote(path).split("/"))


def key_among(settings: Mapping[str, object]) -> str | None:
    """The name of the first setting, at any depth, that is named like a key and has a text as its value; or None."""
    for name, value in settings.items():
        if isinstance(value, str) and value and _A_KEY.search(name) and not _NO_KEY.search(name):
            return name
        inner = value if isinstance(value, list) else [value]
        found = next((key for each in inner if isinstance(each, Mapping) and (key := key_among(each))), None)
        if found is not None:
            return found
    return None


def redacted(text: str, shortest: int = SHORTEST) -> str:
    """The text with every known key of at least ``shortest`` characters replaced by `HIDDEN`."""
    for key in _known:
        if len(key) >= shortest and key in text:
            text = text.replace(key, HIDDEN)
    return text


def _content(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        key = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: the API key can't be read: {reason_of(error)}. Correct api_key_file") from None
    if not key:
        raise InputError(f"{file} holds no API key, as it is empty; put the key there, or correct api_key_file")
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        logger().warning("key.readable_by_others", file=str(file), mend=f"chmod 600 {file}")
    return key
