"""Global memory: the same in a folder and at a server, and one line where it can't be had."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.experience.embedders import Embedder, HashingEmbedder, Vector
from flowevolve.experience.entries import Entry, MemoryUnavailableError, text_to_embed
from flowevolve.experience.settings import GlobalMemorySettings
from flowevolve.experience.store import GlobalMemory
from tests.support.qdrant_server import Broken, FakeQdrant, serving

pytestmark = pytest.mark.anyio

LOOPS = Entry("one", "loops that run too often", "move what stays the same out of the loop\nprefer: loops")
CALLS = Entry("two", "too many calls of functions", "call less often")
NUMBERS = Entry("two", "large numbers", "use integers of fixed size")


class Nobody:
    """Has no model that embeds."""

    async def embed(self, texts: Sequence[str], *, role: str = "embedding") -> tuple[Vector, ...]:
        raise AssertionError("nobody embeds")


class Short(HashingEmbedder):
    """Vectors of another length, of what says it is the same embedder."""

    async def vectors(self, texts: Sequence[str], context: object) -> Sequence[Vector]:
        return [(1.0, 2.0) for _ in texts]


class Other(HashingEmbedder):
    name = "other"


@asynccontextmanager
async def memory_in(kind: str, folder: Path, embedder: Embedder | None = None) -> AsyncIterator[GlobalMemory]:
    """A memory in a folder, or at a server that is there as long."""
    embedder = embedder or HashingEmbedder()
    if kind == "folder":
        async with GlobalMemory.open(folder, embedder) as memory:
            yield memory
    else:
        async with serving(FakeQdrant()) as url, GlobalMemory.open(url, embedder) as memory:
            yield memory


async def add(memory: GlobalMemory, *entries: Entry) -> None:
    await memory.add(entries, await memory.embed([text_to_embed(entry) for entry in entries], Nobody()))


async def search(memory: GlobalMemory, *queries: str, top: int = 3) -> list[Entry]:
    return [found.entry for found in await memory.search(await memory.embed(queries, Nobody()), top)]


@pytest.mark.parametrize("kind", ["folder", "server"])
async def test_entries_are_found_by_what_they_say_the_nearest_first(kind: str, tmp_path: Path) -> None:
    async with memory_in(kind, tmp_path) as memory:
        assert await memory.size() == 0
        assert await search(memory, "loops") == []
        await add(memory, LOOPS, CALLS, NUMBERS)
        assert await memory.size() == 3
        assert await search(memory, "loops that run", top=1) == [LOOPS]
        assert await search(memory, "calls of functions", "loops that run too often", top=1) == [CALLS, LOOPS]
        assert set(await search(memory, "loops", "calls", top=3)) == {LOOPS, CALLS, NUMBERS}
        assert await memory.search([], 3) == []
        [found] = await memory.search(await memory.embed(["large numbers"], Nobody()), 1)
        assert len(found.vector) == 256


@pytest.mark.parametrize("kind", ["folder", "server"])
async def test_an_entry_that_is_added_twice_is_there_once(kind: str, tmp_path: Path) -> None:
    async with memory_in(kind, tmp_path) as memory:
        await add(memory, LOOPS, CALLS)
        await add(memory, CALLS, LOOPS)
        await memory.add([], [])
        assert await memory.size() == 2


async def test_a_folder_keeps_entries_for_the_next_run(tmp_path: Path) -> None:
    async with memory_in("folder", tmp_path / "deep" / "er") as memory:
        await add(memory, LOOPS)
    async with memory_in("folder", tmp_path / "deep" / "er") as memory:
        assert await search(memory, "loops that run too often") == [LOOPS]


async def test_a_folder_belongs_to_one_run_at_a_time(tmp_path: Path) -> None:
    async with memory_in("folder", tmp_path) as memory:
        await add(memory, LOOPS)
        with pytest.raises(InputError, match="another run has it open") as caught:
            async with memory_in("folder", tmp_path):
                pass
        assert "\n" not in str(caught.value)
        assert await memory.size() == 1
    async with memory_in("folder", tmp_path) as memory:
        assert await memory.size() == 1


async def test_two_runs_share_a_server() -> None:
    async with (
        serving(FakeQdrant()) as url,
        GlobalMemory.open(url, HashingEmbedder()) as first,
        GlobalMemory.open(url, HashingEmbedder()) as second,
    ):
        await add(first, LOOPS)
        await add(second, CALLS)
        assert await first.size() == await second.size() == 2


@pytest.mark.parametrize("kind", ["folder", "server"])
async def test_vectors_of_another_length_are_refused(kind: str, tmp_path: Path) -> None:
    async with serving(FakeQdrant()) as url:
        where = url if kind == "server" else tmp_path
        async with GlobalMemory.open(where, HashingEmbedder()) as memory:
            await add(memory, LOOPS)
        async with GlobalMemory.open(where, Short()) as memory:
            for attempt in (search(memory, "loops"), add(memory, CALLS)):
                with pytest.raises(InputError, match="vectors of length 256, but the embedder 'hashing' makes"):
                    await attempt


@pytest.mark.parametrize("kind", ["folder", "server"])
async def test_another_embedder_is_refused_but_in_another_collection(kind: str, tmp_path: Path) -> None:
    async with serving(FakeQdrant()) as url:
        where = url if kind == "server" else tmp_path
        async with GlobalMemory.open(where, HashingEmbedder()) as memory:
            await add(memory, LOOPS)
        with pytest.raises(InputError, match="was made with the embedder 'hashing', not 'other'"):
            async with GlobalMemory.open(where, Other()):
                pass
        async with GlobalMemory.open(where, Other(), collection="mine") as memory:
            await add(memory, CALLS)
            assert await memory.size() == 1


async def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the folder can't be used"):
        async with memory_in("folder", tmp_path / "file"):
            pass


@pytest.mark.parametrize("content", ["no JSON", json.dumps([1])])
async def test_a_folder_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(content)
    with pytest.raises(InputError, match="what is in the folder can't be read"):
        async with memory_in("folder", tmp_path):
            pass


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[oh"])
async def test_a_server_that_is_not_there_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(InputError, match=r"memory http://.*: .+") as caught:
        async with GlobalMemory.open(url, HashingEmbedder()):
            pass
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection:UserWarning")
async def test_a_server_that_wants_a_key_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(FakeQdrant(key="right")) as url:
        with pytest.raises(InputError, match="403"):
            async with GlobalMemory.open(url, HashingEmbedder()):
                pass
        monkeypatch.setenv("MEMORY_KEY", "right")
        section = GlobalMemorySettings.model_validate(
            {"location": url, "api_key_env": "MEMORY_KEY", "embedding": {"by": "hashing"}}
        )
        async with section.open() as memory:
            assert memory is not None
            assert await memory.size() == 0


async def test_without_a_location_there_is_no_memory() -> None:
    async with GlobalMemorySettings().open() as memory:
        assert memory is None


SAYS: dict[Broken, str] = {
    "error": "500",
    "page": "not one of Qdrant's",
    "stranger": "not one of Qdrant's",
    "busy": "too many requests",
    "busy until": "Retry-After",
}


@pytest.mark.parametrize(("how", "says"), SAYS.items())
async def test_a_server_that_fails_later_is_told_from_a_wrong_setting(how: Broken, says: str) -> None:
    qdrant = FakeQdrant()
    async with serving(qdrant) as url, GlobalMemory.open(url, HashingEmbedder()) as memory:
        await add(memory, LOOPS)
        qdrant.broken = how
        with pytest.raises(MemoryUnavailableError, match=says) as caught:
            await search(memory, "loops")
        assert "\n" not in str(caught.value)
        with pytest.raises(MemoryUnavailableError):
            await add(memory, CALLS)
        qdrant.broken = None
        assert await search(memory, "loops") == [LOOPS]


@pytest.mark.parametrize(("how", "says"), SAYS.items())
async def test_an_address_of_something_else_is_refused_in_one_line(how: Broken, says: str) -> None:
    async with serving(FakeQdrant(broken=how)) as url:
        with pytest.raises(InputError, match=rf"memory http://.*: .*{says}.*correct its address") as caught:
            async with GlobalMemory.open(url, HashingEmbedder()):
                pass
    assert "\n" not in str(caught.value)


async def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("flowevolve.experience.store.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'flowevolve\[memory\]'"):
        async with memory_in("folder", tmp_path):
            pass
