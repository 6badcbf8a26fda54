"""How the world `rules` reflects and judges: it rewrites an instruction after feedback, and judges stale edits.

Both work on the texts of `flowevolve.prompts.reflection` alone. Their mistakes are those that real models make: rules
stated wrongly, twice or not at all, lines that fit one example only, and replies without the form that was asked for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowevolve.prompts.reading.fences import fence, labelled_blocks
from flowevolve.prompts.reflection import (
    CURRENT_HEADING,
    EXAMPLES_HEADING,
    HEAD_HEADING,
    PARENT_HEADING,
    STALE_HEADING,
    UPDATES_HEADING,
    WRITE_HEADING,
    EditVerdict,
)
from flowevolve.sim.worlds.rules.params import RulesParams
from flowevolve.sim.worlds.rules.text import Statement, happens, misstate, read_instruction, read_statement, reword

_UNMET = re.compile(r"^Not met: (.+)$", re.MULTILINE)
_TOPIC = re.compile(r"\babout ((?:[\w'-]+ ?){1,8})")
_ANECDOTES = (
    "mention the exact date",
    "thank the people in the office",
    "begin with the reason",
    "name the person in charge",
    "say that the guide is on the usual page",
)


def topic_of(request: str) -> str:
    """What a request is about, in at most eight words."""
    found = _TOPIC.search(request)
    return found[1].strip() if found else "this matter"


def reflect(prompt: str, params: RulesParams, rng: random.Random) -> str:
    """Answer a `reflection_prompt`: say what was noticed, then write the instruction with a few lines changed."""
    examples = _between(prompt, EXAMPLES_HEADING, WRITE_HEADING)
    blocks = labelled_blocks(_between(prompt, CURRENT_HEADING, EXAMPLES_HEADING))
    lines = _remembered(blocks[0][1].splitlines() if blocks else [], params, rng)
    noticed = _notice(examples, lines, params, rng)
    for wanted in noticed:
        _take_up(wanted, lines, params, rng)
    if rng.random() < params.duplicate:
        _repeat(lines, rng)
    if rng.random() < params.noise:
        topic = topic_of(rng.choice(re.split(r"^### Example ", examples, flags=re.MULTILINE)[1:] or [examples]))
        lines.append(f"- For the request about {topic} {rng.choice(_ANECDOTES)}.")
    findings = (
        "\n".join(f"- The answers fail here: {sentence}" for sentence in noticed) or "- The wording can be clearer."
    )
    if happens(params.rewrite, rng):
        lines = [_worded_anew(line, rng) for line in lines]
    if rng.random() < params.unparsable:
        return f"The feedback shows what to change in the instruction:\n{findings}"
    return "\n\n".join([f"The feedback shows what to change:\n{findings}", fence("\n".join(lines))])


def _remembered(lines: Sequence[str], params: RulesParams, rng: random.Random) -> list[str]:
    """The lines that survive a rewriting. The first line, which says who is speaking, always does."""
    if len(lines) <= params.memory:
        return list(lines)
    return [*lines[:1], *(line for line in lines[1:] if rng.random() >= params.forget)]


def _notice(examples: str, lines: Sequence[str], params: RulesParams, rng: random.Random) -> list[str]:
    """The unmet rules that are taken up, in random order, but none that is already stated and not contradicted."""
    unmet = list(dict.fromkeys(_UNMET.findall(examples)))
    stated = read_instruction("\n".join(lines)).by_subject
    missing = [
        sentence
        for sentence in unmet
        if (read_statement(sentence),) not in stated and not any(sentence in line for line in lines)
    ]
    noticed = [sentence for sentence in missing if rng.random() < params.insight]
    return rng.sample(noticed, len(noticed))[: params.max_edits]


def _take_up(sentence: str, lines: list[str], params: RulesParams, rng: random.Random) -> None:
    wanted = read_statement(sentence)
    if wanted is not None:
        if rng.random() < params.mend:
            lines[:] = [line for line in lines if not _contradicts(line, wanted)]
        if rng.random() < params.conflict:
            sentence = misstate(wanted.rule, rng)
        elif happens(params.paraphrase, rng):
            sentence = reword(wanted.rule)
    lines.append(f"- {sentence}")


def _worded_anew(line: str, rng: random.Random) -> str:
    """A line that states a rule, in other words or in the same; any other line unchanged."""
    stated = read_statement(line)
    if stated is None or stated.denied:
        return line
    return f"- {rng.choice((stated.rule.describe(), reword(stated.rule)))}"


def _contradicts(line: str, wanted: Statement) -> bool:
    stated = read_statement(line)
    return stated is not None and stated.subject == wanted.subject and stated != wanted


def _repeat(lines: list[str], rng: random.Random) -> None:
    stated = [statement for line in lines if (statement := read_statement(line)) is not None and not statement.denied]
    if stated:
        lines.append(f"- {reword(rng.choice(stated).rule)}")


def judge(prompt: str, params: RulesParams, rng: random.Random) -> str:
    """Answer a `judge_prompt`: a verdict, a reason, and for an orthogonal edit the current version merged with it."""
    parent = dict(labelled_blocks(_between(prompt, PARENT_HEADING, STALE_HEADING)))
    stale = dict(labelled_blocks(_between(prompt, STALE_HEADING, UPDATES_HEADING)))
    head = dict(labelled_blocks(_between(prompt, HEAD_HEADING, WRITE_HEADING)))
    edits = {name: _compare(parent.get(name, ""), text, head.get(name, "")) for name, text in stale.items()}
    verdict = _right_verdict(edits)
    if rng.random() < params.unparsable:
        return "The edit and the current version have much in common, and both can be defended."
    if rng.random() < params.judge_error:
        verdict = rng.choice([other for other in _REASONS if other != verdict])
        edits = {name: edit.unsifted() for name, edit in edits.items()}
    answer = f"Verdict: {verdict}\nReason: {_REASONS[verdict]}"
    if verdict != "orthogonal":
        return answer
    return "\n".join((answer, "", *(fence(edit.merged(), name) for name, edit in edits.items())))


_REASONS: dict[EditVerdict, str] = {
    "orthogonal": "The edit states something useful that the current version does not say yet.",
    "subsumed": "All that is useful in the edit is already said in the current version.",
    "conflicting": "The edit contradicts what has been accepted in the meantime.",
}


@dataclass(frozen=True, slots=True)
class _Edit:
    """An edit of one component compared with the current version. All fields but ``clash`` hold lines."""

    head: tuple[str, ...]
    added: tuple[str, ...]
    useful: tuple[str, ...]
    outdated: tuple[str, ...]
    """Lines of the current version that the edit replaces and that nobody else has touched."""
    clash: bool

    def merged(self) -> str:
        return "\n".join((*(line for line in self.head if line not in self.outdated), *self.useful))

    def unsifted(self) -> _Edit:
        """The same edit, with all lines that it adds taken to be useful."""
        return _Edit(self.head, self.added, self.added, self.outdated, self.clash)


def _right_verdict(edits: Mapping[str, _Edit]) -> EditVerdict:
    if any(edit.useful for edit in edits.values()):
        return "orthogonal"
    return "conflicting" if any(edit.clash for edit in edits.values()) else "subsumed"


def _compare(parent: str, stale: str, head: str) -> _Edit:
    parent_lines, head_lines = parent.splitlines(), head.splitlines()
    added = [line for line in stale.splitlines() if line.strip() and line not in parent_lines]
    useful: list[str] = []
    outdated: list[str] = []
    clash = False
    for line in added:
        stated = read_statement(line)
        if stated is None:
            continue
        rivals = [other for other in head_lines if _contradicts(other, stated)]
        if any(rival not in parent_lines or rival in stale.splitlines() for rival in rivals):
            clash = True
        elif not any(read_statement(other) == stated for other in head_lines):
            useful.append(line)
            outdated.extend(rivals)
    return _Edit(tuple(head_lines), tuple(added), tuple(useful), tuple(outdated), clash)


def _between(text: str, start: str, end: str) -> str:
    return text.partition(f"\n{start}\n")[2].partition(f"\n{end}\n")[0]
