"""Users' own objects in the journal: pickles, signed with a key that only the run's owner has.

Loading a pickle can run any code, so a pickle is loaded only if it was signed with the same owner's key. The key is in
the owner's configuration folder, never in a run directory; it is created when something is signed for the first time.
"""

from __future__ import annotations

import hmac
import os
import pickle
import secrets
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

from flowevolve._util.errors import StorageError
from flowevolve.core.payload_kinds import Kind, NotKeptError, register

KEY_VARIABLE = "FLOWEVOLVE_KEY_FILE"
"""The environment variable that names another file for the key."""
_KEY_BYTES = 32


def keep_signed(given: type, name: str) -> None:
    """Have the journal keep objects of a class, and of its subclasses, as signed pickles."""
    register(Kind(name, given, partial(_sign, name), partial(_load, name), opaque=True))


def key_file() -> Path:
    """Where the owner's key is, or will be."""
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return Path(named)
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "flowevolve" / "journal.key"


def _sign(name: str, value: object) -> dict[str, bytes]:
    try:
        pickled = pickle.dumps(value, protocol=5)
    except Exception as error:
        raise NotKeptError(f"it can't be pickled: {type(error).__name__}: {error}") from error
    try:
        return {"pickled": pickled, "signature": _signature(name, pickled, _key() or _new_key())}
    except StorageError as error:
        raise NotKeptError(str(error)) from error


def _load(name: str, pickled: bytes, signature: bytes) -> object:
    """Raises:
    NotKeptError: if it was not signed with the owner's key.
    StorageError: if the key can't be used.
    """
    key = _key()
    if key is None or not hmac.compare_digest(signature, _signature(name, pickled, key)):
        raise NotKeptError(
            f"objects of yours in this journal are not signed with the key in {key_file()}, so loading them could run "
            "anybody's code: what they belong to is done again; to avoid that, copy the key file there from the "
            "machine on which the run was started"
        )
    return pickle.loads(pickled)  # noqa: S301  the owner's own, as the signature says


def _signature(name: str, pickled: bytes, key: bytes) -> bytes:
    return hmac.digest(key, b"flowevolve journal 1\n%s\n%s" % (name.encode(), pickled), "sha256")


def _key() -> bytes | None:
    """The owner's key; None if there is none yet.

    Raises:
        StorageError: if it can't be read, is not a key, or others may read or write it.
    """
    path = key_file()
    try:
        with path.open("rb") as file:
            state, key = os.fstat(file.fileno()), file.read(_KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: the key that signs journals can't be read: {error.strerror}") from error
    if hasattr(os, "geteuid") and (stat.S_IMODE(state.st_mode) & 0o077 or state.st_uid != os.geteuid()):
        raise StorageError(
            f"{path}: the key that signs journals must be yours alone, but others may read or write it; chmod 600 "
            f"{path}, or remove it if somebody else has seen it: what it has signed is then done again"
        )
    if len(key) != _KEY_BYTES:
        raise StorageError(f"{path} is not a key that signs journals; remove it, and a new one is made")
    return key


def _new_key() -> bytes:
    """Create the key, unless another process has created it meanwhile."""
    path = key_file()
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            part.touch(mode=0o600, exist_ok=False)
            part.write_bytes(secrets.token_bytes(_KEY_BYTES))
            with suppress(FileExistsError):
                path.hardlink_to(part)  # complete or not at all, and only if there is none yet
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{path}: the key that signs journals can't be written: {error.strerror}") from error
    key = _key()
    assert key is not None
    return key
