"""What is kept of a reply that has a program: what its writer calls it goes into later prompts and the result."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

import flowevolve as fe
from flowevolve.algorithms.baselines.algorithm import OnePlusLambda, SearchConfig
from flowevolve.algorithms.code_evolve import CodeEvolve
from flowevolve.algorithms.code_evolve.config import ArchiveSettings, CodeEvolveConfig
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, Usage
from flowevolve.core.named import Named
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.programs import FunctionProblem
from flowevolve.prompts.programs import META_TITLE, OTHERS_HEADING
from flowevolve.prompts.reading.children import Form
from tests.support.interruption import events_of, evolve
from tests.support.number_programs import Numbers, NumberTask


class Namer:
    """Writes a larger number each time, with a name for it."""

    backend = "namer"

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        await anyio.sleep(1)
        prompt = request.messages[-1].content
        if prompt.startswith(META_TITLE):
            return ChatReply("```\nBe bold.\n```", Usage(1, 1))
        self.prompts.append(prompt)
        value = 1 + len(self.prompts) / 100
        return ChatReply(f"Name: to {value}\nIdea: more is better\n```\nvalue = {value}\n```", Usage(1, 1))

    async def embed(self, request: EmbedRequest, *, timeout: float | None) -> EmbedReply:
        raise NotImplementedError

    async def models(self) -> tuple[str, ...]:
        return ("namer",)

    async def aclose(self) -> None:
        pass

    def roles(self) -> Mapping[str, Role]:
        return {"code": Model(self, "namer"), "meta": Model(self, "namer")}


def test_names_are_kept_and_shown() -> None:
    namer = Namer()
    config = CodeEvolveConfig(islands=1, form="whole", archive=ArchiveSettings(name="naive"))
    report, facts = evolve(
        CodeEvolve(NumberTask(), config), roles=namer.roles, budget=fe.Budget(proposals=30), max_in_flight=2
    )
    assert report.error is None
    programs = [each for each in report.pool.snapshot().candidates() if each.operator != "seed"]
    assert programs
    for program in programs:
        said = Named.of(program)
        assert f"value = {said.name.removeprefix('to ')}" in program.artifact["program.py"]
        assert said.idea == "more is better"
    proposed = [event.data["attributes"] for event in events_of(facts, "candidate.proposed")]
    assert any(isinstance(each, dict) and each.get("edit.idea") == "more is better" for each in proposed)
    shown = [prompt.partition(OTHERS_HEADING)[2] for prompt in namer.prompts]
    assert any("Name: to 1." in each and "\nIdea: more is better\nScore: 1." in each for each in shown)


EDIT = "<<<<<<< SEARCH\nvalue = {}\n=======\nvalue = 2.0\n>>>>>>> REPLACE"
BEGUN = "<<<<<<< SEARCH\nhigh = 0.0\n=======\nhigh = 1"
WHOLE = "value = 2.0\nhigh = 0.0\n"


class CutOff(Namer):
    """Writes one reply, which the limit of tokens cut off."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        await anyio.sleep(1)
        return ChatReply(self._text, Usage(1, 1), "length")

    def roles(self) -> Mapping[str, Role]:
        return {"code": Model(self, "cut off")}


def written(text: str, form: Form) -> tuple[list[str], list[str]]:
    """The programs that are made of a seed by a reply that was cut off, and why it is refused where it is."""
    algorithm = OnePlusLambda(NumberTask(Numbers(seed="value = 1.0\nhigh = 0.0\n")), SearchConfig(form=form))
    report, facts = evolve(algorithm, roles=CutOff(text).roles, budget=fe.Budget(seconds=5), max_in_flight=1)
    programs = [each for each in report.pool.snapshot().candidates() if each.operator != "seed"]
    refused = [str(event.data["reason"]) for event in events_of(facts, "reply.unparsable")]
    return [each.artifact["program.py"] for each in programs], refused


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"```python\n{WHOLE}", "whole"),
        (f"```python\n{WHOLE}```\nThe final one:\n```python\n{WHOLE}low = 0.0", "whole"),
        ("import math\nvalue = 2.0\nhigh = 0.0", "whole"),
        (f"```python\n{WHOLE}", "edits"),
        (f"{EDIT.format(1.0)}\n{BEGUN}", "edits"),
        (f"{EDIT.format(1.0)}\n{BEGUN}", "whole"),
        ("SEARCH:\nvalue = 1.0\nREPLACE:\nvalue = 2.0", "edits"),
    ],
)
def test_a_program_that_the_limit_of_tokens_cut_off_is_not_taken(text: str, form: Form) -> None:
    programs, refused = written(text, form)
    assert programs == []
    assert set(refused) == {"incomplete"}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"```python\n{WHOLE}```\nThe value is now the larg", "whole"),
        (f"```python\n{WHOLE}```\nThe value is now the larg", "edits"),
        (f"```python\n{WHOLE}```\nTo run it:\n```bash\npython prog", "whole"),
        (f"{EDIT.format(1.0)}\nThe value is now the larg", "edits"),
        (f"```\n{EDIT.format(1.0)}", "edits"),
    ],
)
def test_one_that_ends_before_that_is(text: str, form: Form) -> None:
    programs, refused = written(text, form)
    assert programs[:1] == [WHOLE]
    assert "incomplete" not in refused


class Called(Numbers, FunctionProblem):
    """Numbers in programs of which a function is called."""

    entry = "solve"


class Replying(Namer):
    """Always writes the same reply."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        await anyio.sleep(1)
        return ChatReply(self._text, Usage(1, 1))


HELPER = "def double(x):\n    return 2 * x"
SOLVE = "def solve(x):\n    return double(x)"


@pytest.mark.parametrize(
    ("program", "taken"),
    [
        (HELPER.replace("2 * x", "x + x"), False),
        (f"{HELPER}\n\n\nvalue = 2.0", False),
        (f"def twice(x):\n    return 2 * x\n\n\n{SOLVE.replace('double', 'twice')}", True),
        (f"{HELPER}\n\n\nsolve = double", True),
        (f"{HELPER}\n\n\nif True:\n    from math import sqrt as solve", True),
        (f"{HELPER}\n\n\nglobals()['solve'] = double", True),
    ],
)
def test_a_program_without_the_function_that_is_called_is_not_taken(program: str, taken: bool) -> None:
    problem = Called(seed=f"value = 1.0\n\n\n{HELPER}\n\n\n{SOLVE}\n")
    coder = Replying(f"```python\n{program}\n```")
    algorithm = OnePlusLambda(NumberTask(problem), SearchConfig(form="whole"))
    report, facts = evolve(algorithm, roles=coder.roles, budget=fe.Budget(seconds=5), max_in_flight=1)
    assert report.error is None
    made = events_of(facts, "candidate.proposed")[1:]
    refused = [str(event.data["reason"]) for event in events_of(facts, "reply.unparsable")]
    assert bool(made) == taken
    assert set(refused) == (set() if taken else {"elided"})
