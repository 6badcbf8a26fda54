"""Prompts, and the templates that they are written from.

A template is a text with fields in braces, such as ``{examples}``. A section is a line that begins with ``## `` and all
that follows up to the next such line. A section whose fields are all empty is left out, and so is a line that consists
of nothing but an empty field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Self

from flowevolve._util.errors import EngineError, InputError
from flowevolve.core.model import CHARS_PER_TOKEN

Shorten = Callable[[str], str]
"""Makes a text as short as a prompt needs it to be."""

LEAST_CHARACTERS = 200
"""No text in a prompt is made shorter than this."""
_FIELD = re.compile(r"\{([a-z_]+)\}")
_FIELD_ALONE = re.compile(r"^\{([a-z_]+)\}\n", re.MULTILINE)
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)


class Prompt(str):
    """A prompt. ``template`` names the template that it was written from and that template's version."""

    __slots__ = ("template",)
    template: str

    def __new__(cls, text: str, template: str) -> Self:
        prompt = super().__new__(cls, text)
        prompt.template = template
        return prompt


class Template:
    """One template. ``version`` distinguishes different texts of the same name."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text.strip()
        self.version = f"{name}@{blake2b(self.text.encode(), digest_size=4).hexdigest()}"
        self.fields = frozenset(_FIELD.findall(self.text))

    def fill(self, fields: Mapping[str, str]) -> Prompt:
        """Raises: EngineError if a field is missing or unknown."""
        if self.fields != fields.keys():
            raise EngineError(f"template {self.name!r} has fields {sorted(self.fields)}, not {sorted(fields)}")
        sections = [each for each in _SECTION.split(self.text) if self._says_something(each, fields)]
        text = _FIELD_ALONE.sub(lambda field: field[0] if fields[field[1]] else "", "".join(sections))
        return Prompt(_FIELD.sub(lambda field: fields[field[1]], text).strip(), self.version)

    def _says_something(self, section: str, fields: Mapping[str, str]) -> bool:
        names = _FIELD.findall(section)
        return not names or any(fields[name] for name in names)


class Templates:
    """The templates of a run, by name, and how long its prompts and the evolved texts may get.

    No prompt gets longer than ``max_tokens`` if shortening the texts in it can prevent that.
    """

    def __init__(self, templates: Mapping[str, Template], max_tokens: int, max_text_tokens: int) -> None:
        self._templates = templates
        self._most = max_tokens * CHARS_PER_TOKEN
        self._most_text = max_text_tokens * CHARS_PER_TOKEN

    def __getitem__(self, name: str) -> Template:
        return self._templates[name]

    def names(self) -> list[str]:
        return sorted(self._templates)

    def longest(self, *before: str) -> int:
        """The most characters that a text made from these may have: the general limit, or the longest one's length."""
        return max(self._most_text, *map(len, before))

    def text(self, name: str, **fields: str) -> str:
        """A part of prompts, such as the description of a reply's form."""
        return self[name].fill(fields)

    def write(self, name: str, make: Callable[[Shorten], Mapping[str, str]]) -> Prompt:
        """Write the prompt of this name. ``make`` returns its fields; it passes each text that may be shortened through
        the function that it gets. If the prompt would be too long, all of these texts are cut to the same length, the
        longest with which the prompt fits, but never below `LEAST_CHARACTERS`. The middle of each text is cut out.
        """
        template = self[name]
        return self.fitted(lambda shorten: template.fill(make(shorten)))

    def fitted(self, make: Callable[[Shorten], Prompt]) -> Prompt:
        """As `write`, for a prompt that ``make`` writes without a template."""
        prompt = make(str)
        if len(prompt) <= self._most:
            return prompt
        low, high = LEAST_CHARACTERS, len(prompt)
        while high - low > 1:
            middle = (low + high) // 2
            fits = len(make(shortener(middle))) <= self._most
            low, high = (middle, high) if fits else (low, middle)
        return make(shortener(low))

    def replaced(self, own: Mapping[str, str], source: str, max_tokens: int, max_text_tokens: int) -> Templates:
        """These templates, some of them replaced by the user's ``own`` texts. ``source`` says where those come from.

        Raises:
            InputError: if there is no template of a name, or a text does not have exactly the fields of its template.
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
    """Raises: InputError if a template does not have the fields of the one that it replaces."""
    missing, unknown = sorted(shipped.fields - own.fields), sorted(own.fields - shipped.fields)
    has = ", ".join(f"{{{each}}}" for each in sorted(shipped.fields)) or "none"
    if missing:
        raise InputError(f"{source}: template {own.name!r} lacks the field {{{missing[0]}}}; its fields are {has}")
    if unknown:
        raise InputError(f"{source}: template {own.name!r} has no field {{{unknown[0]}}}; its fields are {has}")


def shortener(most: int) -> Shorten:
    """Make a function that cuts the middle out of texts, leaving ``most`` characters and a note on what is gone."""

    def shorten(text: str) -> str:
        if len(text) <= most:
            return text
        note = f"\n[… {len(text) - most} characters left out …]\n"
        half = most // 2
        return text[: most - half].rstrip() + note + text[len(text) - half :].lstrip()

    return shorten
