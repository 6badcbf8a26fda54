"""Payloads of items as pickles: what an event's attachment becomes in the journal, and back.

Unpickling runs whatever code the bytes name: load payloads only from a run directory that is trusted like code.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable, Collection, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any

from flowevolve.artifact import Artifact
from flowevolve.errors import StorageError


def dump(value: object, known_artifacts: Collection[str]) -> bytes:
    """A payload's bytes. Of artifacts with a known id only the id is in them.

    Raises:
        Exception: whatever an object in it raises that can't be pickled.
    """
    buffer = BytesIO()
    _Pickler(buffer, known_artifacts).dump(value)
    return buffer.getvalue()


def load(data: bytes, artifacts: Mapping[str, Artifact]) -> object:
    """The payload that `dump` was given; ``artifacts`` maps the ids of those that were known.

    Raises:
        StorageError: if it can't be made again: an artifact is missing, or the code it needs has changed.
    """
    try:
        return _Unpickler(BytesIO(data), artifacts).load()
    except Exception as error:
        raise StorageError(
            f"a journaled payload can't be loaded: {type(error).__name__}: {error}; "
            "resume with the code and the packages the run was started with"
        ) from error


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: BytesIO, known_artifacts: Collection[str]) -> None:
        super().__init__(buffer, protocol=5)
        self._known = known_artifacts
        self.dispatch_table = {**copyreg.dispatch_table, **_REDUCERS}

    def persistent_id(self, value: object) -> str | None:
        return value.id if type(value) is Artifact and value.id in self._known else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: BytesIO, artifacts: Mapping[str, Artifact]) -> None:
        super().__init__(buffer)
        self._artifacts = artifacts

    def persistent_load(self, artifact_id: object) -> Artifact:
        try:
            return self._artifacts[str(artifact_id)]
        except KeyError:
            raise pickle.UnpicklingError(f"artifact {artifact_id} is not in the journal") from None


def _view(table: dict[object, object]) -> MappingProxyType[object, object]:
    return MappingProxyType(table)


_REDUCERS: dict[type, Callable[[Any], tuple[Callable[..., object], tuple[Any, ...]]]] = {
    MappingProxyType: lambda view: (_view, (dict(view),)),
    Artifact: lambda artifact: (Artifact, (dict(artifact), artifact.kind)),
}
"""Types that pickle can't take apart itself."""
