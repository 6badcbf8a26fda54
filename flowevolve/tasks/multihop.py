"""Questions that need two paragraphs, in rows with HotpotQA's fields: one call notes the evidence, another answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.tasks.loaders import text_of
from flowevolve.tasks.scoring import exact_match, is_number, stated_text, token_f1

EVIDENCE, ANSWER = "find_evidence", "answer"
SEEDS = {
    EVIDENCE: "Read the paragraphs and note the facts that help to answer the question.",
    ANSWER: "Answer the question from the notes, in as few words as possible.",
}


class MultiHopQA:
    """Rows have ``question``, ``context`` ([[title, paragraph or sentences], …]) and ``answer`` or ``answers``.

    With ``supporting_titles`` or ``supporting_facts``, feedback also says which paragraphs the notes did not name.
    Context and facts may also have the form of the Hugging Face hub: an object with a list of titles, and a second list
    in parallel.

    Raises:
        InputError: if a row lacks a field.
    """

    description: ClassVar[str] = "two-hop questions over given paragraphs (HotpotQA rows)"

    def __init__(self, data: Dataset, *, name: str = "multihop", metric: Literal["f1", "em"] = "f1") -> None:
        self.name = name
        self.data = data
        self._metric = metric
        for example in data:
            _answers(example)
            _paragraphs(example)
            _supporting_titles(example)
            text_of(example, "question")

    def seed(self) -> Artifact:
        return Artifact(SEEDS)

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        question = text_of(example, "question")
        paragraphs = "\n\n".join(f"{title}: {text}" for title, text in _paragraphs(example))
        asked = f"Question: {question}\n\nParagraphs:\n{paragraphs}"
        notes = await llm([Message("system", artifact[EVIDENCE]), Message("user", asked)])
        noted = f"Question: {question}\n\nNotes:\n{notes}"
        output = await llm([Message("system", artifact[ANSWER]), Message("user", noted)])
        calls = (
            Call(EVIDENCE, {"question": question, "paragraphs": paragraphs}, notes),
            Call(ANSWER, {"question": question, "notes": notes}, output),
        )
        return Rollout(example.id, output, self._score(example, notes, output), calls)

    def _score(self, example: Example, notes: str, output: str) -> Score:
        golds = _answers(example)
        answer = stated_text(output, number=any(map(is_number, golds)))
        if self._metric == "f1":
            value = max(token_f1(answer, gold) for gold in golds)
        else:
            value = float(any(exact_match(answer, gold) for gold in golds))
        lines = [f"The right answer is {golds[0]!r}; this was scored {value:.2f}."]
        missed = [title for title in _supporting_titles(example) if title.lower() not in notes.lower()]
        if missed:
            lines.append(f"The notes do not name these paragraphs, which hold the facts: {', '.join(missed)}.")
        return Score(value, "\n".join(lines), passed=value == 1.0)


def _answers(example: Example) -> Sequence[str]:
    given = example.data.get("answers", example.data.get("answer"))
    answers = [given] if isinstance(given, str) else given
    if not isinstance(answers, list) or not answers:
        raise InputError(f"row {example.id}: needs 'answer' (a text) or 'answers' (a list of texts)")
    return [str(answer) for answer in answers]


def _paragraphs(example: Example) -> list[tuple[str, str]]:
    context = _pairs(example, "context", "sentences")
    if not isinstance(context, list) or not context:
        raise InputError(f"row {example.id}: 'context' must be a list of [title, paragraph] pairs")
    found: list[tuple[str, str]] = []
    for entry in context:
        if not isinstance(entry, list) or len(entry) != 2:
            raise InputError(f"row {example.id}: 'context' must be a list of [title, paragraph] pairs")
        title, text = entry
        found.append((str(title), "".join(map(str, text)) if isinstance(text, list) else str(text)))
    return found


def _pairs(example: Example, field: str, second: str) -> JSON:
    """The value of a field; two parallel lists in it are turned into a list of pairs."""
    value = example.data.get(field)
    if not isinstance(value, dict):
        return value
    titles, others = value.get("title"), value.get(second)
    if not isinstance(titles, list) or not isinstance(others, list) or len(titles) != len(others):
        raise InputError(f"row {example.id}: {field!r} must have lists 'title' and {second!r} of one length")
    return [[title, other] for title, other in zip(titles, others, strict=True)]


def _supporting_titles(example: Example) -> list[str]:
    titles = example.data.get("supporting_titles")
    if isinstance(titles, list):
        return [str(title) for title in titles]
    facts = _pairs(example, "supporting_facts", "sent_id")
    if isinstance(facts, list):
        return list(dict.fromkeys(str(fact[0]) for fact in facts if isinstance(fact, list) and fact))
    return []
