"""What is checked of models and backends before a run."""

import anyio
import pytest
from structlog.testing import capture_logs

from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve.core.model import RefusedError, ServerError, UnreachableError, WrongAddressError
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from tests.support.scripted_llm import Rig, Scripted

pytestmark = pytest.mark.anyio


async def test_check_passes_when_every_model_is_served() -> None:
    await Rig(Scripted(models=("m", "n")), Scripted()).client.check()


async def test_check_lists_what_is_served_instead() -> None:
    with pytest.raises(BackendRefusedError, match=r"http://fake/v1.*'m'.*qwen, llama"):
        await Rig(Scripted(), Scripted(models=("qwen", "llama"))).client.check()


@pytest.mark.parametrize(
    ("trouble", "raised", "said"),
    [
        (UnreachableError("connection refused"), BackendUnreachableError, "connection refused"),
        (ServerError("not JSON"), BackendUnreachableError, "not JSON"),
        (RefusedError("HTTP 401"), BackendRefusedError, "API key"),
    ],
)
async def test_check_says_what_is_wrong_with_a_backend(trouble, raised, said) -> None:
    with pytest.raises(raised, match=f"http://fake/v1.*{said}"):
        await Rig(Scripted(models=trouble)).client.check()


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_of_ours_has_a_list_of_models(status) -> None:
    with pytest.raises(BackendRefusedError, match="base URL"):
        await Rig(Scripted(models=RefusedError("HTTP", status=status))).client.check()


def remote(models, *, must_be_listed: bool = True, model: str = "gemini-2.5-flash") -> LLMClient:
    role = Model(Scripted(models=models), model, must_be_listed=must_be_listed, must_have_list=False)
    return LLMClient({"task": role}, Scheduler(1), RetryPolicy(), 0, lambda record: None)


async def test_a_model_that_is_not_listed_is_an_error_with_the_list_those_like_it_first() -> None:
    others = [f"m{number}" for number in range(30)]
    with pytest.raises(BackendRefusedError, match=r"'gemini-2.5-flash'.*serves gemini-2.5-flash-001, m0, .*11 more\."):
        await remote((*others, "gemini-2.5-flash-001")).check()


async def test_where_lists_may_be_incomplete_a_note_says_what_is_missing() -> None:
    notes: list[str] = []
    client = remote(("other",), must_be_listed=False)
    await client.check(notes.append)
    assert notes == ["http://fake/v1 does not list 'gemini-2.5-flash', which model names; it serves other"]
    with capture_logs() as logs:
        await client.check()
    assert [(log["event"], log["note"]) for log in logs] == [("models.unknown", notes[0])]


@pytest.mark.parametrize("status", [404, 405])
async def test_a_remote_api_may_have_no_list_of_models(status) -> None:
    notes: list[str] = []
    await remote(RefusedError("HTTP: nothing here", status=status)).check(notes.append)
    assert len(notes) == 1
    assert notes[0].startswith("http://fake/v1 has no list of models")


async def test_an_address_that_lacks_a_part_is_told_with_the_right_one() -> None:
    trouble = WrongAddressError("there is no API at this address")
    with pytest.raises(BackendRefusedError, match=r"^http://fake/v1: there is no API at this address"):
        await remote(trouble).check()


async def test_a_remote_api_that_turns_us_away_is_an_error() -> None:
    with pytest.raises(BackendRefusedError, match="API key"):
        await remote(RefusedError("HTTP 401", status=401)).check()


@pytest.mark.parametrize(
    ("listed", "model"),
    [("models/gemini-2.5-flash", "gemini-2.5-flash"), ("llama3:latest", "llama3"), ("openai/*", "openai/gpt-5")],
)
async def test_other_ways_to_list_a_model_are_understood(listed: str, model: str) -> None:
    notes: list[str] = []
    await remote((listed,), model=model).check(notes.append)
    assert notes == []


async def test_check_does_not_wait_for_ever() -> None:
    class Hanging(Scripted):
        async def models(self) -> tuple[str, ...]:
            await anyio.sleep_forever()
            return ()

    with pytest.raises(BackendUnreachableError, match="nothing came back in 30 s"):
        await Rig(Hanging()).client.check()


async def test_a_backend_without_an_address_is_named_by_its_class() -> None:
    class InMemory:
        async def models(self):
            return ()

    with pytest.raises(BackendRefusedError, match=r"^InMemory does not serve 'm'.*it serves nothing"):
        await Rig(InMemory()).client.check()
