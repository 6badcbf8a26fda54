"""At width 1 every method sends the same requests for the same decisions: as many, of the same shapes, to the same end.

What agentdescent decides otherwise, on a tie, is asserted as it is.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import anyio
import pytest
from agentdescent import Diff, EvolvingArtifact, SingleSlot

from bench._lib.methods.presets import PRESETS
from bench._lib.methods.recording import Role, role_of
from bench.peers import agentdescent, gepa, ours
from bench.peers.chats import Chats
from bench.peers.progress import Kind
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.prompts.reflection import merge_prompt
from flowevolve.prompts.shipped import SHIPPED

PROPOSALS = 6
VALIDATION = 5
MAX_TOKENS = 40
SCORES = ("0.10", "0.20", "0.00", "0.30", "0.00", "0.40", "0.50", "0.00")
"""What the seed and each proposal after it score on every example: better than all before, or worse than all."""
ACCEPTED = sum(score != "0.00" for score in SCORES[1 : PROPOSALS + 1])
TIES = ("0.10",) * len(SCORES)
"""No proposal is better than its parent, and none is worse."""

Shape = tuple[Role, int, int | None, bool]
"""Whose request, how long, its ``max_tokens``, and whether it has a sampling seed."""


class Graded:
    """A task whose examples and answers all have one length; the answer says what it scores."""

    name = "graded"
    description: ClassVar[str] = "for this test"

    def __init__(self) -> None:
        self.data = Dataset(*([Example(f"{kind}{n}", {}) for n in range(size)] for kind, size in (("t", 12), ("v", 5))))

    def seed(self) -> Artifact:
        return Artifact({"instruction": "way 000"})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        asked = f"question {example.id:>4}"
        output = await llm([Message("system", artifact["instruction"]), Message("user", asked)])
        score = Score(float(output), "could be better", passed=False)
        return Rollout(example.id, output, score, (Call("instruction", {"asked": asked}, output),))


class Scripted:
    """Answers the n-th reflection with ``way n`` and every rollout with the score of its way; keeps the shapes."""

    def __init__(self, scores: Sequence[str] = SCORES) -> None:
        self.shapes: list[Shape] = []
        self._scores = scores
        self._reflections = 0
        self._lock = threading.Lock()

    def answer(self, body: dict[str, object]) -> str:
        messages = body["messages"]
        assert isinstance(messages, list)
        role, length = role_of(body), sum(len(message["content"]) for message in messages)
        most = body.get("max_tokens")
        assert most is None or isinstance(most, int)
        with self._lock:
            self.shapes.append((role, length, most, "seed" in body))
            if role == "reflection":
                self._reflections += 1
                return f"```\nway {self._reflections:03}\n```"
            if role == "merge":
                return "```\nway 009\n```"
        return self._scores[int(messages[0]["content"].removeprefix("way "))]


@contextmanager
def serving(script: Scripted) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 2**16  # an answer goes out in one piece

        def do_POST(self) -> None:
            text = script.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._send({"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": {}})

        def do_GET(self) -> None:
            self._send({"data": [{"id": "m"}]})

        def _send(self, content: Mapping[str, object]) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Told:
    """Counts what a method says of itself."""

    def __init__(self) -> None:
        self.kinds: Counter[Kind] = Counter()
        self.best = 0.0
        self.width = 0
        self.returned: str | None = None
        self._lock = threading.Lock()

    def __call__(self, kind: Kind, score: float | None = None, text: str | None = None) -> None:
        with self._lock:
            if kind == "opened":
                self.width += 1
            elif kind == "best":
                self.returned = text
            else:
                self.kinds[kind] += 1
                self.best = max(self.best, score or 0.0)


def chats(url: str) -> Chats:
    return Chats(url, "m", concurrency=8, max_tokens=MAX_TOKENS)


def run_plan(method: str, scores: Sequence[str] = SCORES) -> tuple[Scripted, Told]:
    script, told = Scripted(scores), Told()
    with serving(script) as url:
        match method:
            case "gepa":
                with chats(url) as each:
                    gepa.evolve(Graded(), each, told, proposals=PROPOSALS)
            case "agentdescent":
                with chats(url) as each:
                    agentdescent.evolve(Graded(), each, told, proposals=PROPOSALS, workers=1)
            case _:
                anyio.run(_ours, method, url, told)
    return script, told


async def _ours(method: str, url: str, told: Told) -> None:
    one = {"workers": 1, "max_workers": 1}
    narrow = {
        "algorithm": {"max_in_flight": 1},
        "stages": dict.fromkeys(("generate", "propose", "screen", "evaluate"), one),
    }
    await ours.evolve(
        Graded(),
        PRESETS["lockstep"] if method == "lockstep" else {**PRESETS["plain"], **narrow},
        told,
        url=url,
        model="m",
        concurrency=8,
        max_tokens=MAX_TOKENS,
        budget={"proposals": PROPOSALS},
    )


def expected() -> list[Shape]:
    """Width 1: the seed's validation; then minibatch, reflection, minibatch, and validation of what was better."""
    script, _ = run_plan("lockstep")
    return script.shapes


def test_a_step_is_two_minibatches_a_reflection_and_a_validation() -> None:
    roles = [shape[0] for shape in expected()]
    step: list[Role] = ["rollout", "rollout", "rollout", "reflection", "rollout", "rollout", "rollout"]
    validation: list[Role] = ["rollout"] * VALIDATION
    script = [*validation]
    for score in SCORES[1 : PROPOSALS + 1]:
        script += step + (validation if score != "0.00" else [])
    assert roles == script


@pytest.mark.parametrize("method", ["gepa", "plain"])
def test_the_same_requests_in_the_same_order(method: str) -> None:
    script, told = run_plan(method)
    assert script.shapes == expected()
    assert told.kinds == {"began": 1, "proposed": PROPOSALS, "validated": 1 + ACCEPTED, "accepted": 1 + ACCEPTED}
    assert told.best == 0.5
    assert told.returned == f"way {SCORES.index('0.50'):03}"
    assert told.width == 1


def test_a_method_of_threads_sends_as_many_of_each_shape() -> None:
    """It validates while it goes on proposing, so that their order is open."""
    script, told = run_plan("agentdescent")
    assert Counter(script.shapes) == Counter(expected())
    assert told.kinds == {"began": 1, "proposed": PROPOSALS, "validated": 1 + ACCEPTED, "accepted": 1 + ACCEPTED}
    assert told.returned == f"way {SCORES.index('0.50'):03}"
    assert told.width == 1


@pytest.mark.parametrize("method", ["gepa", "lockstep", "plain"])
def test_a_tie_with_its_parent_is_not_validated(method: str) -> None:
    script, told = run_plan(method, TIES)
    assert told.kinds == {"began": 1, "proposed": PROPOSALS, "validated": 1, "accepted": 1}
    assert len(script.shapes) == VALIDATION + PROPOSALS * 7


def test_agentdescent_validates_and_keeps_ties() -> None:
    """Its own rule, `ParetoAggregator.step` of 0.7.0: what did no worse. It costs a validation for every tie."""
    script, told = run_plan("agentdescent", TIES)
    assert told.kinds == {"began": 1, "proposed": PROPOSALS, "validated": 1 + PROPOSALS, "accepted": 1 + PROPOSALS}
    assert len(script.shapes) == VALIDATION + PROPOSALS * (7 + VALIDATION)


def test_agentdescents_merging_asks_once_for_all_texts_as_ours_does() -> None:
    script = Scripted()
    with serving(script) as url, chats(url) as each:
        merger = agentdescent.Merger("instruction", "value", each, max_proposals=8)
        slot = SingleSlot(initial_value="way 000")
        head = EvolvingArtifact("a", slot.initial(), strategy=slot)
        texts = ["way 000, and be brief", "way 000, and be kind", "way 000, and be brief"]
        diffs = [Diff(diff_id=f"{number}", target="a", ops={"value": text}) for number, text in enumerate(texts)]
        merged, artifact, fused = merger.select(head, diffs)
    assert merged.ops == {"value": "way 009"}
    assert artifact.render() == "way 009"
    assert fused
    versions = merge_prompt(SHIPPED, "instruction", "way 000", texts[:2])
    assert script.shapes == [("merge", len(versions), MAX_TOKENS, True)]


def test_batched_proposals_cost_what_single_ones_do() -> None:
    """PxN asks for no more and no less per proposal; only the parents' minibatches are shared where they are equal."""
    script, told = Scripted(), Told()
    with serving(script) as url, chats(url) as each:
        gepa.evolve(Graded(), each, told, proposals=4, parents=2, mutations=2)
    counts = Counter(script.shapes)
    assert set(counts) == set(expected())
    assert (told.kinds["proposed"], told.width) == (4, 4)
    assert counts.total() == VALIDATION + 4 * 7 + VALIDATION * (told.kinds["validated"] - 1)
