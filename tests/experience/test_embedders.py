"""Embedders: a role's model, a static model in this process, and hashing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from flowevolve._util.errors import InputError
from flowevolve.experience.embedders import HashingEmbedder, LocalEmbedder, RoleEmbedder, Vector
from flowevolve.experience.hashing import hashed_embedding
from flowevolve.experience.settings import EmbeddingSettings
from flowevolve.policies.similarity import cosine

pytestmark = pytest.mark.anyio

WORDS = {"[UNK]": [0, 0, 0], "loop": [1, 0.1, 0], "cycle": [1, 0, 0.1], "number": [0, 1, 0]}


class Model:
    """Has a role's model embed."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def embed(self, texts: Sequence[str], *, role: str = "embedding") -> tuple[Vector, ...]:
        self.asked.append((role, tuple(texts)))
        return tuple((float(len(text)), 1.0) for text in texts)


@pytest.fixture
def static_model(tmp_path: Path) -> Path:
    """A model of four words, in which two of them mean the same."""
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    model = StaticModel(np.array(list(WORDS.values()), dtype=np.float32), tokenizer, normalize=True)
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


async def test_a_roles_model_is_asked_in_its_name() -> None:
    model = Model()
    embedder = EmbeddingSettings(by="role", role="vectors").make()
    assert await embedder.vectors(["a", "bcd"], model) == ((1.0, 1.0), (3.0, 1.0))
    assert model.asked == [("vectors", ("a", "bcd"))]
    assert embedder.name != RoleEmbedder().name


async def test_hashing_needs_nothing() -> None:
    assert await HashingEmbedder().vectors(["one text"], Model()) == [hashed_embedding("one text")]


async def test_a_static_model_knows_what_words_mean(static_model: Path) -> None:
    embedder = EmbeddingSettings(by="local", model=str(static_model)).make()
    await embedder.load()
    loop, cycle, number, nothing = await embedder.vectors(["loop", "cycle", "number", "unheard"], Model())
    assert cosine(loop, cycle) > 0.9 > 0.2 > cosine(loop, number)
    assert len(nothing) == 3
    assert await embedder.vectors([], Model()) == []


async def test_a_model_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no model2vec model can be loaded from") as caught:
        await LocalEmbedder(str(tmp_path / "empty")).load()
    assert "\n" not in str(caught.value)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowevolve.experience.embedders.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'flowevolve\[memory\]'"):
        LocalEmbedder()
