"""A run in which nothing happens: watchers are told the time all the same, and in the end that there was no answer."""

from __future__ import annotations

import re
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatReply, ChatRequest, LLMError, OverloadedError, ServerError
from flowevolve.llm.scheduling.scheduler import SchedulerStats
from flowevolve.runner.run import Watchers, run
from flowevolve.sim.backend import SimBackend
from flowevolve.telemetry.progress import Lines
from tests.runner.test_watcher_errors import TABLE, OwnError, broken
from tests.support.command import flowevolve

SHORT = {**TABLE, "budget": {"seconds": 70}, "drain_seconds": 5.0}
NOTHING = "no call of a model was answered"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated server takes requests and never answers."""

    async def chat(self: SimBackend, request: ChatRequest, *, timeout: float) -> ChatReply:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(SimBackend, "chat", chat)


def run_told(table: dict[str, object], told: list[tuple[float, SchedulerStats]]) -> fe.Result:
    watchers = Watchers(ticks=[lambda seconds, requests: told.append((seconds, requests))])
    return clock.run(partial(run, parse_config(table, "test"), watchers=watchers), clock="virtual")


def test_a_watcher_is_told_the_time_once_a_second_until_the_run_ends() -> None:
    told: list[tuple[float, SchedulerStats]] = []
    result = run_told(TABLE, told)
    assert [seconds for seconds, _ in told] == pytest.approx(range(1, int(result.wall_seconds) + 1))
    assert any(requests.in_flight for _, requests in told)


@pytest.mark.usefixtures("silent")
def test_that_no_answer_comes_can_be_told_while_the_run_goes_on_and_is_told_of_its_result() -> None:
    told: list[tuple[float, SchedulerStats]] = []
    result = run_told(SHORT, told)
    assert len(told) >= 70
    assert all(requests.in_flight for _, requests in told)
    assert repr(result).endswith(f"stopped by the time limit; {NOTHING}>")
    assert NOTHING in result._repr_html_()


@pytest.mark.usefixtures("silent")
def test_optimize_raises_where_no_call_was_answered() -> None:
    with pytest.raises(
        fe.BackendUnreachableError, match=rf"{NOTHING} in 7\d s, .* llm\.timeout_seconds, which is \d+ s"
    ) as caught:
        fe.optimize(budget=fe.Budget(seconds=40), clock="virtual")
    assert fe.result_of(caught.value) is not None


@pytest.mark.usefixtures("silent")
def test_the_command_line_ends_with_the_exit_code_of_a_server_that_gives_no_answer(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('clock = "virtual"\ndrain_seconds = 5.0\n[budget]\nseconds = 70\n')
    done = flowevolve("run", "run.toml", "--out", "runs/a", cwd=tmp_path)
    assert done.returncode == fe.BackendUnreachableError.exit_code
    assert f"error: {NOTHING}" in " ".join(done.stderr.split())
    assert NOTHING in done.stdout


@pytest.mark.parametrize(
    ("error", "every", "said"),
    [
        (
            OverloadedError("slow down", status=429),
            6,
            r"  \d+ requests? held back by rate limits \(the server has refused \d+",
        ),
        (
            ServerError("oops", status=500),
            15,
            r"  \d+ requests? waiting to be sent again after errors of the server \(\d+ so",
        ),
    ],
)
def test_the_progress_says_that_requests_are_held_back_and_why(
    error: LLMError, every: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, answer = count(1), SimBackend.chat

    async def chat(self: SimBackend, request: ChatRequest, *, timeout: float) -> ChatReply:
        if next(numbers) % every == 0:
            raise error
        return await answer(self, request, timeout=timeout)

    monkeypatch.setattr(SimBackend, "chat", chat)
    told: list[str] = []
    progress = Lines(told.append, pause=1.0)
    watchers = Watchers((progress.event,), (progress.call,), traffic=(progress.watch,), ticks=(progress.tick,))
    clock.run(partial(run, parse_config(SHORT, "test"), watchers=watchers), clock="virtual")
    assert any(re.search(said, line) for line in told)


def test_a_result_with_answers_says_nothing_of_it() -> None:
    assert NOTHING not in repr(run_told(TABLE, []))


def test_what_a_watcher_of_the_time_raises_ends_the_run_as_it_is() -> None:
    watchers = Watchers(ticks=[lambda seconds, requests: broken(seconds)])
    with pytest.raises(OwnError):
        clock.run(partial(run, parse_config(TABLE, "test"), watchers=watchers), clock="virtual")
