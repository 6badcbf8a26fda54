"""A collection of entries in Qdrant, in a folder that the client manages itself or on a server. All calls block.

This imports qdrant-client, which is optional and slow to load, so `flowevolve.experience.store` imports it when needed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import cast

from portalocker import LockException, LockFlags, lock
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException
from qdrant_client.models import Distance, PointStruct, QueryRequest, ScoredPoint, VectorParams

from flowevolve._util.errors import InputError, one_line, reason_of
from flowevolve.experience.embedders import Vector
from flowevolve.experience.entries import Entry, FoundEntry, MemoryUnavailableError

TIMEOUT_SECONDS = 10
"""The time limit for one request to a server."""


def in_folder(folder: Path) -> QdrantClient:
    """A client with its data in a folder, which is created if it does not exist.

    Raises:
        InputError: if the folder can't be used, another process uses it, or its data can't be read.
    """
    folder = folder.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("a") as held:  # checked first, as the client leaves files open if it fails
            lock(held, LockFlags.EXCLUSIVE | LockFlags.NON_BLOCKING)
        return QdrantClient(path=str(folder), force_disable_check_same_thread=True)
    except (LockException, RuntimeError):
        raise InputError(
            f"memory {folder}: another run has it open; wait for that to end, or share a Qdrant server by its address"
        ) from None
    except OSError as error:
        raise InputError(f"memory {folder}: the folder can't be used: {reason_of(error)}") from None
    except (ValueError, KeyError, TypeError, sqlite3.Error) as error:
        raise InputError(
            f"memory {folder}: what is in the folder can't be read: {one_line(error)}; name another folder"
        ) from None


def at_server(url: str, api_key: str | None) -> QdrantClient:
    """A client of the server at a URL, by default at port 6333. Sends no request yet.

    Raises:
        InputError: if the URL is invalid.
    """
    try:
        return QdrantClient(url=url, api_key=api_key, timeout=TIMEOUT_SECONDS, check_compatibility=False)
    except ValueError as error:
        raise InputError(f"memory {url}: this is not the address of a Qdrant server: {one_line(error)}") from None


class Collection:
    """A collection of entries whose vectors come from one embedder. ``where`` names the store in errors.

    All methods raise `MemoryUnavailableError` if the store fails.
    """

    def __init__(self, client: QdrantClient, name: str, embedder: str, where: str) -> None:
        self._client = client
        self._name = name
        self._embedder = embedder
        self._where = f"memory {where}: collection {name!r}"

    def check(self) -> None:
        """Raises:
        InputError: if the collection exists with the vectors of another embedder.
        """
        with _store_errors():
            if not self._exists():
                return
            about = self._client.get_collection(self._name).config.metadata
        made_with = None if about is None else about.get("embedder")
        if made_with not in (None, self._embedder):
            raise InputError(
                f"{self._where} was made with the embedder {made_with!r}, not {self._embedder!r}; "
                "use that one, or another collection or location"
            )

    def search(self, vectors: Sequence[Vector], top: int) -> list[FoundEntry]:
        """The ``top`` entries nearest to each vector by cosine similarity, each entry once, the nearest first.

        Raises:
            InputError: if the collection's vectors have another length.
        """
        nearness: dict[FoundEntry, float] = {}
        with _store_errors():
            if not self._exists():
                return []
            self._check_length(len(vectors[0]))
            requests = [
                QueryRequest(query=list(vector), limit=top, with_payload=True, with_vector=True) for vector in vectors
            ]
            for answer in self._client.query_batch_points(self._name, requests):
                for point in answer.points:
                    found = _found(point)
                    nearness[found] = max(nearness.get(found, -1.0), point.score)
        return sorted(nearness, key=lambda found: (-nearness[found], found.entry.id))

    def add(self, entries: Sequence[Entry], vectors: Sequence[Vector]) -> None:
        """Add entries with their vectors; an entry that is stored already stays as it is.

        Raises:
            InputError: as `search`.
        """
        points = [
            PointStruct(id=entry.id, vector=list(vector), payload=asdict(entry))
            for entry, vector in zip(entries, vectors, strict=True)
        ]
        with _store_errors():
            self._make(len(vectors[0]))
            self._check_length(len(vectors[0]))
            self._client.upsert(self._name, points)

    def size(self) -> int:
        """The number of entries."""
        with _store_errors():
            return self._client.count(self._name).count if self._exists() else 0

    def close(self) -> None:
        self._client.close()

    def _exists(self) -> bool:
        return self._client.collection_exists(self._name)

    def _make(self, length: int) -> None:
        if self._exists():
            return
        params = VectorParams(size=length, distance=Distance.COSINE)
        try:
            self._client.create_collection(self._name, vectors_config=params, metadata={"embedder": self._embedder})
        except ApiException:
            if not self._exists():  # otherwise another run has just made it
                raise

    def _check_length(self, length: int) -> None:
        params = self._client.get_collection(self._name).config.params.vectors
        size = params.size if isinstance(params, VectorParams) else None
        if size != length:
            raise InputError(
                f"{self._where} has vectors of length {size}, but the embedder {self._embedder!r} makes vectors of "
                f"length {length}; use another collection or location"
            )


def _found(point: ScoredPoint) -> FoundEntry:
    payload = point.payload or {}
    entry = Entry(*(str(payload.get(name, "")) for name in ("task", "title", "text")))
    # The client's type also covers named, sparse and multiple vectors; our collections have a single plain one.
    return FoundEntry(entry, tuple(cast("list[float]", point.vector)))


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (ApiException, QdrantException, OSError, sqlite3.Error) as error:
        raise MemoryUnavailableError(one_line(error)) from error
    except (ValueError, AssertionError) as error:  # raised by the client if an answer has another form
        raise MemoryUnavailableError(f"the answer is not one of Qdrant's: {one_line(error)}") from error
