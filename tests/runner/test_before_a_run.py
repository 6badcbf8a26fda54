"""What is checked before anything is paid for: by `check`, `run` and `optimize` alike, in one line."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

import flowevolve as fe
from flowevolve.config.run import parse_config
from flowevolve.runner.check import check
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.run import RunRecord, Watchers, run, run_plan
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

pytestmark = pytest.mark.anyio
BUDGET = fe.Budget(proposals=1)


@dataclass(frozen=True)
class Serving:
    url: str
    backend: SimBackend


@pytest.fixture
async def served() -> AsyncIterator[Serving]:
    """A server of the model ``m``."""
    backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"], model="m")
    async with serve(backend) as url:
        yield Serving(url, backend)


def config(llm: dict[str, object]) -> fe.Config:
    return parse_config({"budget": {"proposals": 1}, "llm": {"backend": "openai", **llm}}, "test")


async def with_optimize(llm: dict[str, object]) -> object:
    model = fe.LLM(**llm)  # type: ignore[arg-type]  # pydantic checks
    return await fe.optimize_async(budget=BUDGET, llm=model, progress=False)


WAYS: dict[str, Callable[[dict[str, object]], Awaitable[object]]] = {
    "check": lambda llm: check(config(llm)),
    "run": lambda llm: run(config(llm)),
    "optimize": with_optimize,
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_model_that_is_not_served_is_told_with_the_list(way: str, served: Serving) -> None:
    with pytest.raises(fe.BackendRefusedError, match=f"{served.url} does not serve 'n', .*; it serves m. "):
        await WAYS[way]({"model": "n", "base_url": served.url})
    assert served.backend.service.stats.finished == 0


@pytest.mark.parametrize("way", WAYS)
async def test_an_address_without_its_end_is_told_with_the_right_one(way: str, served: Serving) -> None:
    with pytest.raises(fe.BackendRefusedError, match=f"but there is one at {served.url}; give that address instead$"):
        await WAYS[way]({"model": "m", "base_url": served.url.removesuffix("/v1")})
    assert served.backend.service.stats.finished == 0


@pytest.mark.parametrize("way", WAYS)
async def test_a_key_that_is_not_set_is_told(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(fe.InputError, match=r"variable OPENAI_API_KEY, .* for https://api.openai.com/v1, is not set;"):
        await WAYS[way]({"model": "m"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("model", "mend"),
    [
        ("openai/gpt-5-mini", "OpenAI's own servers know it as 'gpt-5-mini': give that"),
        ("anthropic/claude", "for another provider set backend to 'litellm', or give its base_url"),
    ],
)
async def test_a_model_with_a_provider_before_its_name_is_not_sought_at_openais(
    model: str, mend: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with pytest.raises(fe.InputError, match=f"^llm.model: {model!r} is not the name of a model of OpenAI.*{mend}"):
        await WAYS[way]({"model": model})
    with pytest.raises(fe.InputError, match=f"^llm.roles.reflection.model: {model!r}"):
        await WAYS[way]({"model": "m", "roles": {"reflection": {"model": model}}})


@pytest.mark.parametrize("way", WAYS)
async def test_a_key_of_a_role_that_is_not_set_is_told(way: str) -> None:
    role = {"base_url": "https://h/v1", "api_key_env": "NOT_SET_ANYWHERE"}
    with pytest.raises(fe.InputError, match=r"variable NOT_SET_ANYWHERE, .* for https://h/v1, is not set;"):
        await WAYS[way]({"model": "m", "base_url": "http://127.0.0.1:9/v1", "roles": {"reflection": role}})


@pytest.mark.parametrize("way", WAYS)
async def test_a_role_that_no_shipped_algorithm_calls_is_told(way: str, served: Serving) -> None:
    says = r"llm\.roles\.reflektion: algorithm 'gepa' calls no role of this name; did you mean 'reflection'\?"
    with pytest.raises(fe.InputError, match=says):
        await WAYS[way]({"model": "m", "base_url": served.url, "roles": {"reflektion": {"temperature": 1.0}}})
    assert served.backend.service.stats.finished == 0


async def test_a_config_may_have_the_roles_of_other_algorithms_too(served: Serving) -> None:
    roles = {name: {"temperature": 1.0} for name in ("reflection", "embedding", "code", "large")}
    await check(config({"model": served.backend.model, "base_url": served.url, "roles": roles}))


def test_a_model_without_a_backend_is_not_simulated_in_silence() -> None:
    with pytest.raises(fe.InputError, match="backend is missing, though model is given; set it to 'openai'"):
        parse_config({"budget": {"proposals": 1}, "llm": {"model": "m"}}, "test")


async def test_more_requests_in_flight_than_the_system_allows_files_are_refused(
    served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (150, 200))  # no test can raise it again
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: None)
    says = (
        "llm.concurrency: 300 requests in flight need about 400 open files, but this process may open 200. Raise that "
        r"limit \('ulimit -n'\), or set llm.concurrency to at most 100"
    )
    with pytest.raises(fe.InputError, match=says):
        await check(config({"model": "m", "base_url": served.url, "concurrency": 300}))
    assert served.backend.service.stats.finished == 0


async def test_the_limit_of_open_files_is_raised_where_it_may_be(served: Serving) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (160, hard))
    try:
        await check(config({"model": "m", "base_url": served.url, "concurrency": 80}))
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (180, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_directory_that_opens_slowly_holds_nothing_else_up() -> None:
    opened_in: list[threading.Thread] = []

    def keep() -> RunRecord:
        opened_in.append(threading.current_thread())
        raise fe.InputError("no space")

    plan = make_plan(parse_config({"clock": "real", "budget": {"proposals": 1}}, "test"), ProvidedObjects())
    with pytest.raises(fe.InputError, match="no space"):
        await run_plan(plan, keep, Watchers(), None)
    (thread,) = opened_in
    assert thread is not threading.current_thread()
