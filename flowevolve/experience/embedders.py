"""Embedders, which turn texts into vectors: an LLM role's model, a small model in this process, or hashing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, Protocol

import anyio

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve.experience.hashing import hashed_embedding

if TYPE_CHECKING:
    from model2vec import StaticModel

Vector = tuple[float, ...]
EmbedderName = Literal["role", "local", "hashing"]

LOCAL_MODEL = "minishlab/potion-base-8M"
"""The default model of ``local``: 8 million parameters, 256 dimensions, English."""


class EmbeddingContext(Protocol):
    """Embeds texts with the model of an LLM role, as `flowevolve.core.context.StageContext` does."""

    async def embed(self, texts: Sequence[str], *, role: str = "embedding") -> tuple[Vector, ...]: ...


class Embedder(Protocol):
    """Turns texts into vectors, which are close to each other if the texts have a similar meaning.

    ``name`` identifies the source of the vectors: those of embedders with different names can't be compared.
    """

    @property
    def name(self) -> str: ...

    async def load(self) -> None:
        """Get ready. Calling this again does nothing.

        Raises:
            InputError: if something that it needs is missing.
        """
        ...

    async def vectors(self, texts: Sequence[str], context: EmbeddingContext) -> Sequence[Vector]:
        """One vector for each text, in the order of the texts and all of the same length.

        Raises:
            InputError: as `load`.
            LLMError: if a call failed for good.
        """
        ...


class RoleEmbedder:
    """Uses the model of an LLM role. The role's name identifies its vectors, whichever model the role stands for."""

    def __init__(self, role: str = "embedding") -> None:
        self.name = f"role {role}"
        self._role = role

    async def load(self) -> None:
        pass

    async def vectors(self, texts: Sequence[str], context: EmbeddingContext) -> Sequence[Vector]:
        return await context.embed(texts, role=self._role)


class HashingEmbedder:
    """Hashes words, without a model, so that only texts which share words are close to each other."""

    name = "hashing"

    async def load(self) -> None:
        pass

    async def vectors(self, texts: Sequence[str], context: EmbeddingContext) -> Sequence[Vector]:
        return await in_thread(lambda: [hashed_embedding(text) for text in texts])


class LocalEmbedder:
    """Uses a static model in this process (model2vec), which averages the vectors of words and needs no GPU.

    ``model`` is a folder, or a name at Hugging Face, which is downloaded once.

    Raises:
        InputError: if model2vec is not installed.
    """

    def __init__(self, model: str = LOCAL_MODEL) -> None:
        if find_spec("model2vec") is None:
            raise InputError("embedder 'local' needs model2vec; pip install 'flowevolve[memory]', or embed by a role")
        self.name = f"model2vec {model}"
        self._model = model
        self._loaded: StaticModel | None = None
        self._loading = anyio.Lock()

    async def load(self) -> None:
        await self._load()

    async def vectors(self, texts: Sequence[str], context: EmbeddingContext) -> Sequence[Vector]:
        model = await self._load()
        return await in_thread(_encode, model, texts) if texts else []

    async def _load(self) -> StaticModel:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await in_thread(_load, self._model)
            return self._loaded


def _load(name: str) -> StaticModel:
    from model2vec import StaticModel  # noqa: PLC0415 - an extra, and slow to load

    try:
        return StaticModel.from_pretrained(name, force_download=False)
    except Exception as error:
        # The loader raises errors of its own, of Hugging Face's client, of its HTTP client and of safetensors.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"embedder 'local': no model2vec model can be loaded from {name!r} ({reason[:300]}); "
            "give a folder that holds one, or a name at Hugging Face that can be reached"
        ) from error


def _encode(model: StaticModel, texts: Sequence[str]) -> list[Vector]:
    return [tuple(map(float, vector)) for vector in model.encode(list(texts))]
