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
    """Names artifacts by a reducer, not by ``persistent_id``, which pickle would ask about every single string."""

    def __init__(self, buffer: BytesIO, known_artifacts: Collection[str]) -> None:
        super().__init__(buffer, protocol=5)

        def reduce(artifact: Artifact) -> tuple[Callable[..., object], tuple[object, ...]]:
            if artifact.id in known_artifacts:
                return _journaled, (artifact.id,)
            return Artifact, (dict(artifact), artifact.kind)

        self.dispatch_table = {**copyreg.dispatch_table, MappingProxyType: _reduce_view, Artifact: reduce}


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: BytesIO, artifacts: Mapping[str, Artifact]) -> None:
        super().__init__(buffer)
        self._artifacts = artifacts

    def find_class(self, module: str, name: str) -> object:
        return self._artifact if (module, name) == (__name__, _journaled.__name__) else super().find_class(module, name)

    def _artifact(self, artifact_id: str) -> Artifact:
        try:
            return self._artifacts[artifact_id]
        except KeyError:
            raise pickle.UnpicklingError(f"artifact {artifact_id} is not in the journal") from None


def _journaled(artifact_id: str) -> Artifact:
    """Stands in a pickle for an artifact that is in the journal."""
    raise pickle.UnpicklingError(f"artifact {artifact_id} is in the journal: load this with flowevolve.store.payloads")


def _reduce_view(view: MappingProxyType[Any, object]) -> tuple[Callable[..., object], tuple[object, ...]]:
    return _view, (dict(view),)


def _view(table: dict[Any, object]) -> MappingProxyType[Any, object]:
    return MappingProxyType(table)
