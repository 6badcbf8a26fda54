"""Programs that are too much like others are turned down before they are run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import anyio
import pytest

import flowevolve as fe
from flowevolve.algorithms.baselines.algorithm import OnePlusLambda, SearchConfig
from flowevolve.core.calls import CallRecord
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, RejectedError, Usage
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.programs.problem import PROGRAM
from flowevolve.prompts.novelty import NOVELTY_TITLE, TOO_LIKE_HEADING
from tests.support.interruption import Fact, events_of, evolve
from tests.support.number_programs import Numbers, NumberTask

VALUES = [1.0, 1.1, 1.2, 1.3]


class Server:
    """Writes one of few numbers, so that most programs are there already; embeds by the number; and judges."""

    backend = "server"

    def __init__(self, verdict: str = "Verdict: new", *, embeds: bool = True) -> None:
        self.verdict = verdict
        self.embeds = embeds
        self.prompts: list[str] = []
        self.embedded: list[Sequence[str]] = []

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        await anyio.sleep(2)
        prompt = request.messages[0].content
        self.prompts.append(prompt)
        if prompt.startswith(NOVELTY_TITLE):
            return ChatReply(self.verdict, Usage(50, 5))
        value = Random(f"{request.seed}").choice(VALUES)
        return ChatReply(f"```\nshared = 1\nvalue = {value}\n```", Usage(100, 10))

    async def embed(self, request: EmbedRequest, *, timeout: float | None) -> EmbedReply:
        await anyio.sleep(1)
        self.embedded.append(request.texts)
        if not self.embeds:
            raise RejectedError("too long")
        vectors = tuple((1.0, 0.0) if "1.3" in text else (0.0, 1.0) for text in request.texts)
        return EmbedReply(vectors, Usage(7), "server")

    async def models(self) -> tuple[str, ...]:
        return ("server",)

    async def aclose(self) -> None:
        pass

    def roles(self) -> Mapping[str, Role]:
        return {name: Model(self, "server") for name in ("code", "novelty", "embedding")}


def search(
    server: Server, novelty: Mapping[str, object], before: Sequence[Fact] = (), max_in_flight: int = 1
) -> tuple[RunReport, list[Fact]]:
    config = SearchConfig.model_validate({"form": "whole", "novelty": novelty})
    task = NumberTask(Numbers(seed="shared = 1\nvalue = 1.0"))
    budget = fe.Budget(proposals=16, minutes=30)
    algorithm = OnePlusLambda(task, config)
    return evolve(algorithm, before, roles=server.roles, budget=budget, max_in_flight=max_in_flight)


def programs(facts: Sequence[Fact]) -> list[str]:
    proposed = events_of(facts, "candidate.proposed")
    return [str(fe.Artifact({"text": str(event.data["components"])})["text"]) for event in proposed]


def test_nothing_is_looked_at_by_default() -> None:
    _, facts = search(Server(), {})
    assert events_of(facts, "program.not_new") == events_of(facts, "novelty.compared") == []
    assert len(set(programs(facts))) < len(programs(facts))


def test_by_its_text_no_program_is_run_twice() -> None:
    report, facts = search(Server(), {"by": "text", "threshold": 1.0})
    turned_down = events_of(facts, "program.not_new")
    assert turned_down
    assert {(event.data["by"], event.data["similarity"]) for event in turned_down} == {("text", 1.0)}
    assert "of its lines are those of c0" in str({event.data["reason"] for event in turned_down})
    in_pool = [each.artifact.id for each in report.pool.snapshot().candidates()]
    assert len(set(in_pool)) == len(in_pool)
    assert report.replies.to_json()["not_new"] == {"text": len(turned_down)}
    assert report.stages["write"].counts.reasons["not new"] == len(turned_down)
    assert report.spent.proposals == 16
    assert len(events_of(facts, "candidate.assessed")) < 16


def test_a_lower_threshold_turns_down_more() -> None:
    _, facts = search(Server(), {"by": "text", "threshold": 0.5})
    assert len(events_of(facts, "candidate.proposed")) == 1  # the seed: half of each program is the shared line


def test_another_one_is_asked_for_and_told_why() -> None:
    server = Server()
    report, facts = search(server, {"by": "text", "tries": 3})
    again = [event.data.get("again", False) for event in events_of(facts, "program.not_new")]
    assert True in again
    told = sum(TOO_LIKE_HEADING in prompt for prompt in server.prompts)
    assert told in (again.count(True), again.count(True) - 1)  # for the last there may be no room
    assert all(prompt.count(TOO_LIKE_HEADING) <= 1 for prompt in server.prompts)
    assert report.spent.proposals == 16 == len(server.prompts) - report.unchanged  # each that changed something counts


def test_embeddings_are_kept_so_that_only_new_programs_are_embedded() -> None:
    server = Server()
    report, facts = search(server, {"by": "embedding", "threshold": 0.9})
    assert {"shared = 1\nvalue = 1.3", "shared = 1\nvalue = 1.0"} <= {text.strip() for text in server.embedded[0]} | {
        text.strip() for texts in server.embedded for text in texts
    }
    kept = [each for each in report.pool.snapshot().candidates() if "embedding" in each.attributes]
    assert [each.artifact[PROGRAM].strip() for each in kept] == ["shared = 1\nvalue = 1.3"]
    assert kept[0].attributes["embedding"] == [1.0, 0.0]
    assert all("1.3" not in text for texts in server.embedded[-3:] for text in texts[1:])
    assert {event.data["by"] for event in events_of(facts, "program.not_new")} == {"embedding"}
    assert report.spent.tokens == sum(call.reply.paid.total_tokens for call in calls(facts) if call.reply)


def calls(facts: Sequence[Fact]) -> list[CallRecord]:
    return [fact for fact in facts if isinstance(fact, CallRecord)]


def test_where_nothing_can_be_embedded_programs_are_new() -> None:
    report, facts = search(Server(embeds=False), {"by": "embedding"})
    assert report.error is None
    assert events_of(facts, "program.not_new") == []
    missing = [event.data for event in events_of(facts, "reply.missing")]
    assert {(str(each["role"]), str(each["error"])) for each in missing} == {("embedding", "too long")}


@pytest.mark.parametrize(("verdict", "runs"), [("**Verdict:** same", 1), ("Verdict: new", 17), ("Hm.", 17)])
def test_a_judge_is_asked_and_what_it_says_holds(verdict: str, runs: int) -> None:
    server = Server(verdict)
    _, facts = search(server, {"by": "judge", "compared": 2})
    asked = [prompt for prompt in server.prompts if prompt.startswith(NOVELTY_TITLE)]
    assert asked
    assert all("### Program 1\n" in prompt and "### Program 3\n" not in prompt for prompt in asked)
    assert len(events_of(facts, "candidate.assessed")) == runs


@pytest.mark.parametrize("by", ["text", "embedding", "judge"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_run_that_goes_on_pays_for_no_look_twice(by: str, share: float) -> None:
    settings = {"by": by, "tries": 2}
    _, whole = search(Server("Verdict: same"), settings, max_in_flight=3)
    before = whole[: int(share * len(whole))]
    report, facts = search(Server("Verdict: same"), settings, before, max_in_flight=3)
    assert report.error is None
    known = {(call.scope.stage, call.scope.item, call.scope.index) for call in calls(before) if call.reply}
    assert known
    made = [(call.scope.stage, call.scope.item, call.scope.index) for call in calls(facts)[len(calls(before)) :]]
    assert known.isdisjoint(made)
    looks = [event.data["item"] for event in events_of(facts, "novelty.compared")]
    assert len(looks) == len({(item, number) for item, number in _numbered(looks)})


def _numbered(items: Sequence[object]) -> list[tuple[object, int]]:
    return [(item, items[:place].count(item)) for place, item in enumerate(items)]


def test_equal_seeds_give_equal_runs() -> None:
    runs = [search(Server(), {"by": "embedding", "tries": 2}, max_in_flight=4)[1] for _ in range(2)]
    first, second = ([(fact.seq, fact.time, fact.kind) for fact in run if isinstance(fact, fe.Event)] for run in runs)
    assert first == second
