"""The templates of the shipped prompts, and the user's own templates that replace some of them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from flowevolve._util.errors import InputError, reason_of
from flowevolve.core.templates import Template, Templates

MAX_TOKENS = 32_000
"""The most tokens of a prompt, unless the configuration sets another limit."""
MAX_TEXT_TOKENS = 4_000
"""The most tokens of a text that is evolved, unless the configuration sets another limit."""
_ENDING = ".md"


def _shipped() -> Templates:
    folder = files("flowevolve.prompts") / "templates"
    texts = [each for each in folder.iterdir() if each.name.endswith(_ENDING)]
    named = {each.name.removesuffix(_ENDING): each.read_text(encoding="utf-8") for each in texts}
    return Templates({name: Template(name, text) for name, text in sorted(named.items())}, MAX_TOKENS, MAX_TEXT_TOKENS)


SHIPPED = _shipped()


def read_templates(folder: Path | None, max_tokens: int, max_text_tokens: int = MAX_TEXT_TOKENS) -> Templates:
    """The shipped templates, each replaced by the folder's ``NAME.md`` if there is one.

    Raises:
        InputError: if the folder can't be read, or a file in it is no template, or lacks a field.
    """
    if folder is None:
        return SHIPPED.replaced({}, "", max_tokens, max_text_tokens)
    where = f"prompts.dir: {folder}"
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == _ENDING)
        own = {path.stem: path.read_text(encoding="utf-8") for path in paths}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{where} can't be read: {reason_of(error)}") from error
    if not own:
        raise InputError(f"{where}: there is no template in this folder; a template is a file named NAME{_ENDING}")
    return SHIPPED.replaced(own, where, max_tokens, max_text_tokens)
