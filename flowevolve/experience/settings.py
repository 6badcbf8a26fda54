"""Settings of a global memory, for the tables of algorithms that have one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import Field

from flowevolve._util.secrets import read_key
from flowevolve._util.settings import Settings
from flowevolve.experience.embedders import (
    LOCAL_MODEL,
    Embedder,
    EmbedderName,
    HashingEmbedder,
    LocalEmbedder,
    RoleEmbedder,
)
from flowevolve.experience.store import COLLECTION, GlobalMemory


class EmbeddingSettings(Settings):
    """How texts are turned into vectors."""

    by: EmbedderName = "role"
    """``role``: the model of an LLM role; ``local``: a small model in this process (extra ``memory``); ``hashing``:
    hashed words.
    """
    role: str = Field(default="embedding", min_length=1)
    """With ``role``: the role's name."""
    model: str = LOCAL_MODEL
    """With ``local``: a folder, or a name at Hugging Face."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The LLM role that embeds, if there is one."""
        return (self.role,) if self.by == "role" else ()

    def make(self) -> Embedder:
        """Make the embedder.

        Raises:
            InputError: if it needs a package that is not installed.
        """
        match self.by:
            case "role":
                return RoleEmbedder(self.role)
            case "local":
                return LocalEmbedder(self.model)
            case "hashing":
                return HashingEmbedder()


class GlobalMemorySettings(Settings):
    """Where experience with other tasks is stored."""

    location: str | None = None
    """A folder, or the URL of a Qdrant server; None: there is no global memory."""
    collection: str = COLLECTION
    """The name of the Qdrant collection. Collections are independent of each other."""
    api_key_env: str = "QDRANT_API_KEY"
    """The environment variable with the server's API key, if it needs one."""
    embedding: EmbeddingSettings = EmbeddingSettings()

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
