"""The world `harness`: a coder that writes harnesses, and a model that labels texts by the examples it is shown.

The harnesses are real files that run. They differ in how many examples they show and how they choose them, so that
their scores truly differ. Some are broken on purpose in one of the ways of ``BROKEN``. Like a real model, the world
sees nothing but the text of a request.
"""

from __future__ import annotations

import random
import re

from flowevolve.core.model import ChatRequest
from flowevolve.prompts.harnesses import HARNESS_TITLE
from flowevolve.sim.worlds.rules.params import ParamsWorld

BROKEN_SHARE, ENDLESS_SHARE = 0.2, 0.02
"""The shares of harnesses that can't be run, and of those that never end."""
_LOOK = (
    '{"tool": "list", "path": ""}\n{"tool": "read", "path": "summary.txt"}\n{"tool": "read", "path": "frontier.txt"}'
)
_SEARCH = '{"tool": "search", "text": "class Memory"}'
_EXAMPLE = re.compile(r"^Text: (.*)\nLabel: (.+)$", re.MULTILINE)
_QUERY = re.compile(r"^Text: (.*)\nLabel:\s*\Z", re.MULTILINE)
_LABELS = re.compile(r"^Labels: (.+)$", re.MULTILINE)
_WORD = re.compile(r"[a-z]{3,}")

HARNESS = '''\
"""Shows {shown} examples: {how}."""

import re


def words(text):
    return set(re.findall("[a-z]{{{length},}}", text.lower()))


class Memory:
    def __init__(self, llm, labels):
        self.llm = llm
        self.labels = labels
        self.seen = []

    def predict(self, text):
        seen = {choice}
        parts = ["Labels: " + ", ".join(self.labels)]
        parts += ["Text: " + each["text"].replace("\\n", " ") + "\\nLabel: " + each["label"] for each in seen]
        return self.llm("\\n\\n".join([*parts, "Text: " + text.replace("\\n", " ") + "\\nLabel:"])).strip()

    def learn_from_batch(self, batch):
        self.seen += batch

    def get_state(self):
        return self.seen

    def set_state(self, state):
        self.seen = state
'''
CHOICES = {
    "the last ones": "self.seen[-{shown}:]",
    "the first ones": "self.seen[:{shown}]",
    "those with the most words in common": (
        'sorted(self.seen, key=lambda each: -len(words(each["text"]) & words(text)))[:{shown}]'
    ),
    "those with the largest share of words in common": (
        'sorted(self.seen, key=lambda each: -len(words(each["text"]) & words(text))'
        ' / (1 + len(words(each["text"]) | words(text))))[:{shown}]'
    ),
}
BROKEN = {
    "syntax": ("def predict(self, text):", "def predict(self, text)"),
    "method": ("def set_state(", "def load_state("),
    "name": ("self.seen = []", "self.seen = nothing"),
    "class": ("class Memory:", "class Harness:"),
}
ENDLESS = ("        self.seen += batch", "        while True:\n            pass")


class HarnessWorld(ParamsWorld):
    """``params`` are those of the world `rules`. Only ``obedience`` is used: how often a text is labelled with care."""

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        """The reply's text. Equal requests and equally seeded generators give equal texts."""
        if request.messages[0].content.startswith(HARNESS_TITLE):
            return _code(len(request.messages), rng)
        return _label(request.messages[-1].content, self.params.obedience, rng)


def _code(messages: int, rng: random.Random) -> str:
    """Look around, maybe twice, then write two or three harnesses."""
    if messages == 1:
        return _LOOK
    if messages == 3 and rng.random() < 0.5:
        return _SEARCH
    blocks = [f"```python\n{write_harness(rng)}```" for _ in range(rng.choice((2, 3, 3)))]
    return "\n\n".join(["These differ in what they show.", *blocks])


def write_harness(rng: random.Random) -> str:
    """The source of a harness; sometimes of one that does not work."""
    how, shown = rng.choice(sorted(CHOICES)), rng.choice((1, 2, 3, 5, 8, 12))
    choice = CHOICES[how].format(shown=shown)
    source = HARNESS.format(shown=shown, how=how, choice=choice, length=rng.choice((3, 4, 5)))
    luck = rng.random()
    if luck < ENDLESS_SHARE:
        return source.replace(*ENDLESS)
    if luck < ENDLESS_SHARE + BROKEN_SHARE:
        return source.replace(*BROKEN[rng.choice(sorted(BROKEN))])
    return source


def _label(prompt: str, care: float, rng: random.Random) -> str:
    """The label of the example most similar to the text; a guess if none is similar, and sometimes even if one is."""
    named = _LABELS.search(prompt)
    labels = named[1].split(", ") if named else ["unknown"]
    query = _QUERY.search(prompt)
    words = _words(query[1]) if query else set()
    examples = [(_likeness(words, _words(text)), label) for text, label in _EXAMPLE.findall(prompt)]
    if examples and rng.random() < care:
        likeness, label = max(examples, key=lambda each: each[0])
        if likeness > 0:
            return str(label)
    said = max(labels, key=lambda label: _likeness(words, _words(label)))
    return said if words & _words(said) else rng.choice(labels)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _likeness(one: set[str], other: set[str]) -> float:
    return len(one & other) / (1 + len(one | other))
