"""How the world `rules` writes an answer: a plain business text on a topic that keeps a given set of rules.

Each kind of rule sets a part of a plan, and one renderer turns the plan into text. Parts that no rule sets are left to
habit, like a real model's liking for bullets and bold words, so that unstated rules are met now and then by luck.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import cycle, islice

from flowevolve.sim.worlds.rules.text import Statement
from flowevolve.tasks.verifiers.base import Kwargs, integer, string, strings

_OPENINGS = (
    "Here is what you should know about {topic}, and why it matters now.",
    "We are writing today, as promised, to tell you about {topic}.",
    "Many of you have asked about {topic}, so here are the facts.",
    "There is news about {topic}, and most of it is good.",
)
_BODY = (
    "The work starts next week, and we expect it to be over within a month.",
    "Nothing changes for those who have already made their arrangements.",
    "The team in charge has prepared a short guide, which you will find on the usual page.",
    "If something is unclear, ask your manager, who has all the details.",
    "We have listened to your comments, and several of them have shaped the plan.",
    "Some steps will take a little longer at first, but they will save time later.",
    "Every customer who is affected will hear from us directly.",
    "A customer had asked for this, and others will welcome it.",
    "The deadline for questions is Friday, and answers follow on Monday.",
    "So far the costs stay within the budget, and we mean to keep it so.",
    "Thanks to the team on site, the first trial went well.",
    "Where old and new rules differ, the new ones count.",
    "Someone from the team will be there in person, should you need a hand.",
    "We will look at the results after six weeks, and then decide how to go on.",
    "A small group has tried it out, and their verdict was clear.",
    "Questions of safety have been settled, and nothing speaks against the plan.",
    "Safety comes first, so take the time you need.",
)
_COURTESIES = (
    "Please keep this in mind, and please pass it on.",
    "Please have a look at the guide before you start.",
    "We kindly ask for your patience.",
)
_EMPHASES = (
    "This is very important to us.",
    "We are really looking forward to it.",
    "It has been a very busy season, and it shows.",
)
_POINTS = (
    "read the short guide",
    "note the new dates",
    "tell your colleagues",
    "collect open questions",
    "check your own arrangements",
    "report what goes wrong",
)
_FILLERS = (
    "Good preparation makes the change easier for all of us.",
    "The details are kept in one place and stay up to date.",
    "Small problems are best reported on the same day.",
    "What has worked well so far will stay as it is.",
    "Nobody is expected to know everything from the start.",
    "A second message with the first results will follow in due course.",
    "The people who do the daily work know best where it can be improved.",
    "Until then the present arrangement remains in force without any change.",
)
_WITH_WORDS = (
    "There are pages on {words} as well.",
    "For {words} see the guide.",
    "Notes on {words} are in the annex.",
)
_CAPITALS = ("NEW", "DATES", "APPLY", "FROM", "NEXT", "MONTH")
_BLANKS = ("[name]", "[date]", "[place]", "[contact]")
_ASIDE = "The page is brought up to date every week."
_MARKED = ("*new dates*", "*short guide*", "*open questions*", "*first results*")

_LIKES_BULLETS = 0.6
_LIKES_COURTESY = 0.5
_LIKES_EMPHASIS = 0.5
_LIKES_BLANKS = 0.4
_LIKES_MARKING = 0.5
_LIKES_TITLE = 0.25
_LIKES_POSTSCRIPT = 0.1
_LIKES_LENGTH = 0.25
_AVOIDS_COMMAS = 0.15


@dataclass
class _Plan:
    """What the answer is to contain. It is filled by habit first, then by the rules that are kept."""

    title: bool = False
    quoted: bool = False
    commas: bool = True
    bullets: int = 0
    marked: int = 0
    blanks: int = 0
    capitals: int = 0
    paragraphs: int = 1
    words: int = 0
    splitter: str = ""
    sections: int = 0
    postscript: str = ""
    ending: str = ""
    wanted: list[tuple[str, int]] = field(default_factory=list)
    banned: list[str] = field(default_factory=list)


def _habits(rng: random.Random) -> _Plan:
    return _Plan(
        title=rng.random() < _LIKES_TITLE,
        bullets=rng.choice((3, 3, 4)) if rng.random() < _LIKES_BULLETS else 0,
        marked=rng.choice((1, 2)) if rng.random() < _LIKES_MARKING else 0,
        blanks=rng.choice((1, 2)) if rng.random() < _LIKES_BLANKS else 0,
        postscript="P.S." if rng.random() < _LIKES_POSTSCRIPT else "",
        commas=rng.random() >= _AVOIDS_COMMAS,
        words=115 if rng.random() < _LIKES_LENGTH else 0,
    )


def write_answer(topic: str, statements: Iterable[Statement], rng: random.Random) -> str:
    """Write a text of roughly 60 to 150 words on ``topic`` that obeys all ``statements``."""
    plan = _habits(rng)
    for statement in statements:
        _obey(plan, statement, statement.rule.kwargs)
    text = _finish(plan, _layout(plan, _sentences(plan, topic, rng), rng), topic)
    if not plan.commas:
        text = text.replace(",", "")
    if plan.banned:
        text = _without(tuple(plan.banned), text)
    return f'"{text}"' if plan.quoted else text


def _obey(plan: _Plan, statement: Statement, kwargs: Kwargs) -> None:
    """Change the plan as a statement says. Only the first three rules can be denied."""
    match statement.rule.id:
        case "punctuation:no_comma":
            plan.commas = statement.denied
        case "detectable_format:title":
            plan.title = not statement.denied
        case "startend:quotation":
            plan.quoted = not statement.denied
        case "detectable_content:postscript":
            plan.postscript = string(kwargs, "postscript_marker")
        case "startend:end_checker":
            plan.ending = string(kwargs, "end_phrase")
        case "detectable_content:number_placeholders":
            plan.blanks = integer(kwargs, "num_placeholders")
        case "detectable_format:number_bullet_lists":
            plan.bullets = integer(kwargs, "num_bullets")
        case "detectable_format:number_highlighted_sections":
            plan.marked = integer(kwargs, "num_highlights")
        case "detectable_format:multiple_sections":
            plan.splitter, plan.sections = string(kwargs, "section_spliter"), integer(kwargs, "num_sections")
        case "change_case:capital_word_frequency":
            plan.capitals = integer(kwargs, "capital_frequency")
        case "length_constraints:number_paragraphs":
            plan.paragraphs = integer(kwargs, "num_paragraphs")
        case "length_constraints:number_words":
            plan.words = integer(kwargs, "num_words")
        case "keywords:existence":
            plan.wanted.extend((word, 1) for word in strings(kwargs, "keywords"))
        case "keywords:frequency":
            plan.wanted.append((string(kwargs, "keyword"), integer(kwargs, "frequency")))
        case "keywords:forbidden_words":
            plan.banned.extend(strings(kwargs, "forbidden_words"))


def _sentences(plan: _Plan, topic: str, rng: random.Random) -> list[str]:
    said = [rng.choice(_OPENINGS).format(topic=topic), *rng.sample(_BODY, 3)]
    if rng.random() < _LIKES_EMPHASIS:
        said.append(rng.choice(_EMPHASES))
    if rng.random() < _LIKES_COURTESY:
        said.append(rng.choice(_COURTESIES))
    for turn in range(max((times for _, times in plan.wanted), default=0)):
        words_left = " and ".join(word for word, times in plan.wanted if times > turn)
        said.append(_WITH_WORDS[turn % len(_WITH_WORDS)].format(words=words_left))
    if plan.marked:
        said.append(f"Look out for {' and '.join(_some(_MARKED, plan.marked))} on the page.")
    if plan.blanks:
        said.append(f"To be filled in by the sender: {' and '.join(_some(_BLANKS, plan.blanks))}.")
    if plan.capitals:
        said.append(f"{' '.join(_some(_CAPITALS, plan.capitals))}.")
    banned = tuple(plan.banned)
    parts, words = max(plan.paragraphs, plan.sections), sum(_length(banned, sentence) for sentence in said)
    fillers = cycle(rng.sample(_FILLERS, len(_FILLERS)))
    while words < plan.words or len(said) < parts:
        said.append(next(fillers))
        words += _length(banned, said[-1])
    return said


@lru_cache(maxsize=4096)
def _length(banned: tuple[str, ...], sentence: str) -> int:
    return len((_without(banned, sentence) if banned else sentence).split())


def _some(phrases: Sequence[str], count: int) -> list[str]:
    return list(islice(cycle(phrases), count))


def _layout(plan: _Plan, sentences: list[str], rng: random.Random) -> str:
    """Spread the sentences over paragraphs, with headings, dividers and bullets where the plan asks for them."""
    count = max(plan.paragraphs, plan.sections, 2)
    cuts = [len(sentences) * part // count for part in range(count + 1)]
    text = ""
    for part in range(count):
        if part:
            text += "\n\n***\n\n" if part < plan.paragraphs else "\n\n"
        if part < plan.sections:
            text += f"{plan.splitter} {part + 1}\n"
        text += " ".join(sentences[cuts[part] : cuts[part + 1]])
    if plan.bullets:
        text += "\n\n" + "\n".join(f"* {point}" for point in _some(rng.sample(_POINTS, len(_POINTS)), plan.bullets))
    return text


def _finish(plan: _Plan, text: str, topic: str) -> str:
    if plan.title:
        text = f"<<News about {topic}>>\n\n{text}"
    if plan.postscript:
        text += f"\n\n{plan.postscript} {_ASIDE}"
    if plan.ending:
        text += f"\n\n{plan.ending}"
    return text


@lru_cache(maxsize=1024)
def _ban(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?:\b(?:{'|'.join(map(re.escape, words))})\b ?)+(\w)?", re.IGNORECASE)


def _without(words: tuple[str, ...], text: str) -> str:
    """``text`` without ``words``. If a removed word had a capital, the word after it gets it."""
    return _ban(words).sub(lambda found: (str.upper if found[0][0].isupper() else str)(found[1] or ""), text)
