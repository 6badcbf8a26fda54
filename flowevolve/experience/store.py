"""Experience with other tasks in a vector store: a Qdrant server, or a folder, which one run at a time can use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve.experience.embedders import Embedder, EmbeddingContext, Vector
from flowevolve.experience.entries import Entry, FoundEntry, MemoryUnavailableError

if TYPE_CHECKING:
    from flowevolve.experience.qdrant import Collection

COLLECTION = "flowevolve"
_REQUESTS = 8
"""Concurrent requests to a server. A folder is only used by one thread at a time."""


class GlobalMemory:
    """Entries that can be searched by meaning. Open it with `open`."""

    def __init__(self, collection: Collection, embedder: Embedder, threads: int) -> None:
        self._collection = collection
        self._embedder = embedder
        self._limiter = anyio.CapacityLimiter(threads)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, location: str | Path, embedder: Embedder, *, collection: str = COLLECTION, api_key: str | None = None
    ) -> AsyncIterator[Self]:
        """Open the memory in a folder, which is created if needed, or on the server at a URL, until the block ends.

        Raises:
            InputError: if the folder can't be used or another run uses it, the server can't be reached, the memory has
                another embedder's vectors, or qdrant-client or what the embedder needs is missing.
        """
        if find_spec("qdrant_client") is None:
            raise InputError("global memory needs qdrant-client; pip install 'flowevolve[memory]'")
        await embedder.load()
        where = str(location)
        store = await in_thread(_connect, where, collection, embedder.name, api_key)
        memory = cls(store, embedder, _REQUESTS if _is_url(where) else 1)
        try:
            try:
                await in_thread(store.check)
            except MemoryUnavailableError as error:
                raise InputError(f"memory {where}: {error}; start the server, or correct its address") from None
            yield memory
        finally:
            with anyio.CancelScope(shield=True):
                await in_thread(store.close)

    async def embed(self, texts: Sequence[str], context: EmbeddingContext) -> Sequence[Vector]:
        """Vectors to search with.

        Raises:
            LLMError: if a call of the embedding role failed for good.
        """
        return await self._embedder.vectors(texts, context)

    async def search(self, vectors: Sequence[Vector], top: int) -> list[FoundEntry]:
        """The ``top`` entries nearest to each vector by cosine similarity, each entry once, the nearest first.

        Raises:
            InputError: if the memory's vectors have another length.
            MemoryUnavailableError: if the store failed.
        """
        return await in_thread(self._collection.search, vectors, top, limiter=self._limiter) if vectors else []

    async def add(self, entries: Sequence[Entry], vectors: Sequence[Vector]) -> None:
        """Add entries with the vectors of their `text_to_embed`; an entry that is stored already stays as it is.

        Raises:
            InputError: as `search`.
            MemoryUnavailableError: if the store failed.
        """
        if entries:
            await in_thread(self._collection.add, entries, vectors, limiter=self._limiter)

    async def size(self) -> int:
        """The number of entries.

        Raises:
            MemoryUnavailableError: if the store failed.
        """
        return await in_thread(self._collection.size, limiter=self._limiter)


def _is_url(location: str) -> bool:
    return location.startswith(("http://", "https://"))


def _connect(location: str, collection: str, embedder: str, api_key: str | None) -> Collection:
    from flowevolve.experience import qdrant  # noqa: PLC0415 - an extra, and slow to load

    client = qdrant.at_server(location, api_key) if _is_url(location) else qdrant.in_folder(Path(location))
    return qdrant.Collection(client, collection, embedder, location)
