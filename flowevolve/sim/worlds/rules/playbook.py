"""How the world `rules` works with a playbook: it learns from answers, and curates, merges and compares notes.

It works on the texts of `flowevolve.prompts.playbook` alone. A note helps if it states a rule of the house style. The
mistakes are those of the world's other replies: rules stated wrongly, twice or not at all, and useless notes.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve.prompts.playbook import (
    ADVICE_HEADING,
    CITE_RULE,
    COMPARE_TITLE,
    CURATE_TITLE,
    FEEDBACK_HEADING,
    GATHER_TITLE,
    LAST_TRY_RULE,
    LESSON_TITLE,
    LESSONS_HEADING,
    MERGE_TITLE,
    NEW_HEADING,
    NOTED_HEADING,
    PLAYBOOK_HEADING,
    PLAYBOOK_RULE,
    SECTIONS_LABEL,
    USED_HEADING,
)
from flowevolve.prompts.reading.fences import fence, labelled_blocks
from flowevolve.prompts.reading.notes import NOTE_LINE
from flowevolve.sim.worlds.rules.params import RulesParams
from flowevolve.sim.worlds.rules.text import Statement, misstate, read_statement, reword

Responder = Callable[[str, RulesParams, random.Random], str]

_RESULT = re.compile(r"^(Met|Not met): (.+)$", re.MULTILINE)
_SECTIONS = re.compile(rf"^{SECTIONS_LABEL} (.+)$", re.MULTILINE)
_IDLE = ("Keep the tone of the last letter.", "Mention the date of the meeting.", "Thank the colleagues by name.")


def without_preamble(instruction: str) -> str:
    """An instruction without the lines that only say what a playbook is, which nobody has to keep in mind."""
    return instruction.replace(f"{PLAYBOOK_RULE}\n", "").replace(f"{LAST_TRY_RULE}\n", "")


def citation(instruction: str, kept: Sequence[Statement]) -> str:
    """The last line of an answer if the instruction asks for citations: the notes that state rules which were kept."""
    if CITE_RULE not in instruction:
        return ""
    used = [name for name, text, _ in _notes(instruction) if read_statement(text) in kept]
    return f"\nUsed: {', '.join(used) or 'none'}"


def _learn(prompt: str, params: RulesParams, rng: random.Random) -> str:
    feedback, used = _block(prompt, FEEDBACK_HEADING), _block(prompt, USED_HEADING)
    results = [(word == "Met", read_statement(rule), rule) for word, rule in _RESULT.findall(feedback)]
    unmet = [rule for met, _, rule in results if not met]
    noticed = [rule for rule in rng.sample(unmet, len(unmet)) if rng.random() < params.insight][: params.max_edits]
    lessons = [_stated(rule, params, rng) for rule in noticed]
    if unmet and rng.random() < params.noise / 2:
        lessons.append(rng.choice(_IDLE))
    if rng.random() < params.unparsable:
        return "The answer could be better in several ways."
    lines = [f"Diagnosis: {len(unmet)} of {len(results)} checks failed.", *(f"Lesson: {lesson}" for lesson in lessons)]
    return "\n".join([*lines, *(f"{name}: {_tag(text, results)}" for name, text, _ in _notes(used))])


def _stated(rule: str, params: RulesParams, rng: random.Random) -> str:
    statement = read_statement(rule)
    return misstate(statement.rule, rng) if statement is not None and rng.random() < params.conflict else rule


def _tag(text: str, results: Sequence[tuple[bool, Statement | None, str]]) -> str:
    stated = read_statement(text)
    if stated is None:
        return "neutral"
    for met, rule, _ in results:
        if rule is not None and rule.subject == stated.subject:
            return "helpful" if met and rule == stated else "neutral" if rule == stated else "harmful"
    return "neutral"


def _curate(prompt: str, params: RulesParams, rng: random.Random) -> str:
    notes = _notes(_block(prompt, PLAYBOOK_HEADING))
    lessons = [line.removeprefix("- ") for line in _block(prompt, LESSONS_HEADING).splitlines()]
    named = _SECTIONS.search(prompt)
    sections = named[1].split(", ") if named else ["strategies"]
    said = [(name, statement) for name, text, _ in notes if (statement := read_statement(text)) is not None]
    operations: list[Mapping[str, JSON]] = [
        {"op": "DELETE", "id": name} for name, _, (up, down) in notes if down > up and rng.random() < params.mend
    ]
    taken = {str(each["id"]) for each in operations}
    for lesson in lessons:
        wanted = read_statement(lesson)
        rivals = [name for name, other in said if wanted and other.subject == wanted.subject and other != wanted]
        rivals = [name for name in rivals if name not in taken]
        if any(other == wanted for _, other in said) and rng.random() >= params.duplicate:
            continue
        if rivals and rng.random() < params.mend:
            operations.append({"op": "UPDATE", "id": rivals[0], "text": lesson})
            taken.add(rivals[0])
        else:
            text = reword(wanted.rule) if wanted and rng.random() < params.duplicate else lesson
            operations.append({"op": "ADD", "section": rng.choice(sections), "text": text})
    if rng.random() < params.unparsable:
        return "The playbook should take up the lessons."
    return fence(json.dumps(operations), "json")


def _gather(prompt: str, params: RulesParams, rng: random.Random) -> str:
    """Gather lessons, each once, and of contradicting ones the most frequent. If they are many, some are overlooked."""
    lessons = [line.removeprefix("- ") for line in _block(prompt, LESSONS_HEADING).splitlines()]
    if rng.random() < params.unparsable:
        return "These lessons have much in common."
    drawn = Counter(lessons)
    by_subject: dict[str, str] = {}
    for lesson in sorted(drawn, key=lambda lesson: -drawn[lesson]):
        stated = read_statement(lesson)
        by_subject.setdefault(lesson if stated is None else stated.subject, lesson)
    attention = min(1.0, 2 * params.comfortable_versions / max(1, len(lessons)))
    return "\n".join(f"Lesson: {lesson}" for lesson in by_subject.values() if rng.random() < attention)


def _compare(prompt: str, params: RulesParams, rng: random.Random) -> str:
    noted = [statement for line in _block(prompt, NOTED_HEADING).splitlines() if (statement := read_statement(line))]
    words = []
    for line in _block(prompt, NEW_HEADING).splitlines():
        number, _, text = line.partition(". ")
        stated = read_statement(text)
        if stated in noted:
            word = "same"
        elif stated is not None and any(other.subject == stated.subject for other in noted):
            word = "conflict"
        else:
            word = "new"
        if rng.random() < params.judge_error:
            word = rng.choice(("same", "new", "conflict"))
        words.append(f"{number}: {word}")
    return "\n".join(words)


ANSWERS: Mapping[str, Responder] = {
    LESSON_TITLE: _learn,
    CURATE_TITLE: _curate,
    GATHER_TITLE: _gather,
    MERGE_TITLE: lambda prompt, params, rng: fence(_block(prompt, ADVICE_HEADING).splitlines()[0].removeprefix("- ")),
    COMPARE_TITLE: _compare,
}
"""The functions that answer prompts about playbooks, by the first line of the prompt."""


def _block(prompt: str, heading: str) -> str:
    """The text of the first fence below a heading."""
    blocks = labelled_blocks(prompt.partition(f"\n{heading}\n")[2])
    return blocks[0][1] if blocks else ""


def _notes(text: str) -> list[tuple[str, str, tuple[int, int]]]:
    """The id, the text and the two counters of each note in a text."""
    found = [match for line in text.splitlines() if (match := NOTE_LINE.match(line))]
    return [(match["id"], match["text"], (int(match["up"] or 0), int(match["down"] or 0))) for match in found]
