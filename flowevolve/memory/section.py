"""Settings of a global memory, for the sections of algorithms that have one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import Field

from flowevolve.llm.keys import read_key
from flowevolve.memory.embedders import LOCAL_MODEL, Embedder, EmbedderName, make_embedder
from flowevolve.memory.store import COLLECTION, GlobalMemory
from flowevolve.section import Section


class EmbeddingSection(Section):
    """What turns texts into vectors."""

    by: EmbedderName = "role"
    """``role``: the model of an LLM role; ``local``: a small model in this process (extra ``memory``); ``hashing``:
    hashed words.
    """
    role: str = Field(default="embedding", min_length=1)
    """With ``role``: which."""
    model: str = LOCAL_MODEL
    """With ``local``: a folder, or a name at Hugging Face."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The LLM role that embeds, if one does."""
        return (self.role,) if self.by == "role" else ()

    def make(self) -> Embedder:
        """Raises:
        InputError: if what it needs is not installed.
        """
        return make_embedder(self.by, role=self.role, model=self.model)


class GlobalMemorySection(Section):
    """Where experience with other tasks is kept."""

    location: str | None = None
    """A folder, or the URL of a Qdrant server; None: no global memory."""
    collection: str = COLLECTION
    """Memories of different collections know nothing of each other."""
    api_key_env: str = "QDRANT_API_KEY"
    """The environment variable with the server's key, if it wants one."""
    embedding: EmbeddingSection = EmbeddingSection()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[GlobalMemory | None]:
        """The memory, or None without a location.

        Raises:
            InputError: if it can't be opened.
        """
        if self.location is None:
            yield None
            return
        key = read_key(self.api_key_env, None)
        embedder = self.embedding.make()
        async with GlobalMemory.open(self.location, embedder, collection=self.collection, api_key=key) as memory:
            yield memory
