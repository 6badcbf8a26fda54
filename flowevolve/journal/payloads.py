"""Converts payloads, which are what is attached to events, to JSON for the journal and back.

Plain values stand for themselves, and an object stands for a dict whose keys are texts. Everything else is an array
that begins with a name for its type: ``["tuple", 1, 2]``, ``["Selected", {"parent": …}]``, ``["artifact", id]`` for an
artifact that is in the journal already. Loading creates only objects of the types listed here or registered in
`flowevolve.core.payload_kinds`.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType, NoneType
from typing import Any

from pydantic_core import to_json

from flowevolve._util.errors import FROM_ITS_POOL, StorageError
from flowevolve.core.artifact import Artifact
from flowevolve.core.payload_kinds import Kind, NotKeptError, kind_named, kind_of

_PLAIN = frozenset({NoneType, bool, int, float, str})
_TEXTS = frozenset({str})
_SEQUENCES: Mapping[str, Callable[[list[Any]], object]] = {
    "tuple": tuple,
    "list": list,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "view": lambda parts: MappingProxyType(*parts),
    "bytes": lambda parts: b64decode(*parts),
}
"""The types that are created from a list of their parts, by name."""


def dump(value: object, known_artifacts: Collection[str]) -> bytes:
    """A payload as bytes. Artifacts with known ids are represented by their ids alone.

    Raises:
        NotKeptError: if the payload contains something that can't be kept.
    """
    try:
        form = _Forms(known_artifacts).form(value)
        try:
            return to_json(form, inf_nan_mode="constants")
        except ValueError:  # it can't write lone surrogates
            return json.dumps(form, separators=(",", ":")).encode()
    except (RuntimeError, ValueError) as error:  # the payload contains itself, or was changed meanwhile
        raise NotKeptError(f"{type(error).__name__}: {error}") from error


def load(data: bytes, artifacts: Mapping[str, Artifact]) -> object:
    """The payload that `dump` was given. ``artifacts`` maps ids to the artifacts that were known then.

    Raises:
        StorageError: if it can't be restored: an artifact or a kind is missing, the code it needs has changed, or a key
            can't be used.
        NotKeptError: if it can't be loaded here, because it was signed with the key of another owner.
    """
    if data.startswith(b"\x80"):
        raise StorageError(
            "the journal was written by an earlier version of flowevolve, whose runs can't be resumed; report and "
            f"export can read it. To go on, {FROM_ITS_POOL}"
        )
    try:
        return _Values(artifacts).value(json.loads(data))
    except (NotKeptError, StorageError):
        raise
    except Exception as error:
        raise StorageError(
            f"a payload in the journal can't be loaded: {type(error).__name__}: {error}. "
            "Resume the run with the code, the packages and the plug-ins that it was started with; a field that was "
            "added to a payload since then needs a default"
        ) from error


class _Forms:
    """Turns one payload into what JSON can hold."""

    def __init__(self, known_artifacts: Collection[str]) -> None:
        self._known = known_artifacts
        self._opaque: dict[int, int] = {}

    def form(self, value: Any) -> object:  # noqa: ANN401  anything at all may travel
        given = type(value)
        if given in _PLAIN:
            return value
        write = _WRITERS.get(given)
        if write is not None:
            return write(self, value)
        kind = kind_of(given)
        if kind is None:
            raise NotKeptError(
                f"the journal can't hold a {given.__module__}.{given.__qualname__}; if it is a dataclass, write "
                "@flowevolve.payload above it, else make it plain data"
            )
        return self._once(kind, value) if kind.opaque else [kind.name, self._values(kind.take_apart(value))]

    def _once(self, kind: Kind, value: object) -> object:
        if id(value) in self._opaque:
            return ["again", self._opaque[id(value)]]
        form = [kind.name, self._values(kind.take_apart(value))]
        self._opaque[id(value)] = len(self._opaque)
        return form

    def _values(self, table: Mapping[str, object]) -> dict[str, object]:
        return {key: each if type(each) in _PLAIN else self.form(each) for key, each in table.items()}

    def _dict(self, value: dict[Any, object]) -> object:
        if not _TEXTS.issuperset(map(type, value)):
            return self._sequence(value.items(), "dict")
        if _PLAIN.issuperset(map(type, value.values())):
            return value
        return self._values(value)

    def _sequence(self, value: Collection[object], name: str) -> object:
        return [name, *(value if _PLAIN.issuperset(map(type, value)) else map(self.form, value))]

    def _view(self, value: MappingProxyType[Any, object]) -> object:
        return ["view", self._dict(dict(value))]

    def _bytes(self, value: bytes) -> object:
        return ["bytes", b64encode(value).decode()]

    def _artifact(self, value: Artifact) -> object:
        return ["artifact", value.id] if value.id in self._known else ["artifact", value.kind, dict(value)]


_WRITERS: Mapping[type, Callable[[_Forms, Any], object]] = {
    dict: _Forms._dict,
    MappingProxyType: _Forms._view,
    bytes: _Forms._bytes,
    Artifact: _Forms._artifact,
    **{each: partial(_Forms._sequence, name=each.__name__) for each in (tuple, list, set, frozenset)},
}


class _Values:
    """Turns what JSON held into one payload."""

    def __init__(self, artifacts: Mapping[str, Artifact]) -> None:
        self._artifacts = artifacts
        self._opaque: list[object] = []

    def value(self, form: Any) -> Any:  # noqa: ANN401  whatever has travelled
        if isinstance(form, dict):
            return {key: self.value(each) for key, each in form.items()}
        if not isinstance(form, list):
            return form
        name, *parts = form
        if name == "artifact":
            return self._known(*parts) if len(parts) == 1 else Artifact(parts[1], parts[0])
        if name == "again":
            return self._opaque[parts[0]]
        make = _SEQUENCES.get(name)
        return self._object(name, *parts) if make is None else make(list(map(self.value, parts)))

    def _object(self, name: str, form: Mapping[str, object]) -> object:
        kind = kind_named(name)
        if kind is None:
            raise LookupError(f"no package that was imported defines payloads of kind {name!r}")
        value = kind.put_together(**{key: self.value(each) for key, each in form.items()})
        if kind.opaque:
            self._opaque.append(value)
        return value

    def _known(self, artifact_id: str) -> Artifact:
        try:
            return self._artifacts[artifact_id]
        except KeyError:
            raise LookupError(f"artifact {artifact_id} is not in the journal") from None
