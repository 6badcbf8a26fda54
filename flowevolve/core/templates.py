"""Prompts, and the templates that they are written from.

A template is a text with fields in braces, such as ``{examples}``. A section of it, which is a line that begins with
``## `` and what follows up to the next, is left out if all of its fields are empty, and so is a line that consists of
an empty field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Self

from flowevolve._util.errors import EngineError, InputError

Shorten = Callable[[str], str]
"""Makes a text as short as a prompt needs it."""

CHARACTERS_PER_TOKEN = 4
"""By which a limit in tokens is one in characters: English text and code have about as many."""
LEAST_CHARACTERS = 200
"""No text in a prompt is made shorter than this."""
_FIELD = re.compile(r"\{([a-z_]+)\}")
_FIELD_ALONE = re.compile(r"^\{([a-z_]+)\}\n", re.MULTILINE)
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)


class Prompt(str):
    """A prompt. ``template`` names the template that it was written from, and the version of that."""

    __slots__ = ("template",)
    template: str

    def __new__(cls, text: str, template: str) -> Self:
        prompt = super().__new__(cls, text)
        prompt.template = template
        return prompt


class Template:
    """One template; ``version`` tells texts of one name apart."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text.strip()
        self.version = f"{name}@{blake2b(self.text.encode(), digest_size=4).hexdigest()}"
        self.fields = frozenset(_FIELD.findall(self.text))

    def fill(self, fields: Mapping[str, str]) -> Prompt:
        """Raises: EngineError if a field is missing, or unknown."""
        if self.fields != fields.keys():
            raise EngineError(f"template {self.name!r} has fields {sorted(self.fields)}, not {sorted(fields)}")
        sections = [each for each in _SECTION.split(self.text) if self._says_something(each, fields)]
        text = _FIELD_ALONE.sub(lambda field: field[0] if fields[field[1]] else "", "".join(sections))
        return Prompt(_FIELD.sub(lambda field: fields[field[1]], text).strip(), self.version)

    def _says_something(self, section: str, fields: Mapping[str, str]) -> bool:
        names = _FIELD.findall(section)
        return not names or any(fields[name] for name in names)


class Templates:
    """The templates of a run, by name, and how long its prompts and the texts that are evolved may get.

    No prompt gets longer than ``max_tokens`` if shortening the texts in it can do that.
    """

    def __init__(self, templates: Mapping[str, Template], max_tokens: int, max_text_tokens: int) -> None:
        self._templates = templates
        self._most = max_tokens * CHARACTERS_PER_TOKEN
        self._most_text = max_text_tokens * CHARACTERS_PER_TOKEN

    def __getitem__(self, name: str) -> Template:
        return self._templates[name]

    def names(self) -> list[str]:
        return sorted(self._templates)

    def longest(self, *before: str) -> int:
        """How many characters a text may have that is made from these: as many as they have, or as all texts may."""
        return max(self._most_text, *map(len, before))

    def text(self, name: str, **fields: str) -> str:
        """A part of prompts, such as the description of a reply's form."""
        return self[name].fill(fields)

    def write(self, name: str, make: Callable[[Shorten], Mapping[str, str]]) -> Prompt:
        """The prompt of this name. ``make`` gives its fields; it passes each text that may be shortened through the
        function that it is given. Where the prompt would be too long, all of these texts are cut to one length, the
        longest with which it is not, and never to less than `LEAST_CHARACTERS`. The middle of a text is what goes.
        """
        template = self[name]
        prompt = template.fill(make(str))
        if len(prompt) <= self._most:
            return prompt
        low, high = LEAST_CHARACTERS, len(prompt)
        while high - low > 1:
            middle = (low + high) // 2
            fits = len(template.fill(make(_shortener(middle)))) <= self._most
            low, high = (middle, high) if fits else (low, middle)
        return template.fill(make(_shortener(low)))

    def replaced(self, own: Mapping[str, str], source: str, max_tokens: int, max_text_tokens: int) -> Templates:
        """These templates, some of them with texts of the user's own. ``source`` says where these are from.

        Raises:
            InputError: if there is no template of a name, or a text has not all fields of its template, or others.
        """
        templates = dict(self._templates)
        for name, text in own.items():
            if name not in templates:
                raise InputError(f"{source}: there is no template {name!r}; there are {', '.join(self.names())}")
            template = Template(name, text)
            _check_fields(template, templates[name], source)
            templates[name] = template
        return Templates(templates, max_tokens, max_text_tokens)


def _check_fields(own: Template, shipped: Template, source: str) -> None:
    """Raises: InputError if a template has not the fields that it has to have."""
    missing, unknown = sorted(shipped.fields - own.fields), sorted(own.fields - shipped.fields)
    has = ", ".join(f"{{{each}}}" for each in sorted(shipped.fields)) or "none"
    if missing:
        raise InputError(f"{source}: template {own.name!r} lacks the field {{{missing[0]}}}; its fields are {has}")
    if unknown:
        raise InputError(f"{source}: template {own.name!r} has no field {{{unknown[0]}}}; its fields are {has}")


def _shortener(most: int) -> Shorten:
    def shorten(text: str) -> str:
        if len(text) <= most:
            return text
        note = f"\n[… {len(text) - most} characters left out …]\n"
        half = most // 2
        return text[: most - half].rstrip() + note + text[len(text) - half :].lstrip()

    return shorten
