"""IFEval's constraints on form: punctuation, beginnings and ends, lists, sections (arXiv 2311.07911, appendix A)."""

from __future__ import annotations

import json
import re

from flowevolve.tasks.verifiers.base import Kwargs, Verifier, integer, string

_BULLET = re.compile(r"^[ \t]*(?:\*(?!\*)|-)[ \t]*\S", re.MULTILINE)
_HIGHLIGHT = re.compile(r"(?<!\*)\*(?!\*)([^\n*]+)\*(?!\*)|\*\*([^\n*]+)\*\*")
_TITLE = re.compile(r"<<([^\n<>]+)>>")
_RESPONSES = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def _quotation(response: str, kwargs: Kwargs) -> bool:
    text = response.strip()
    return len(text) > 1 and text.startswith('"') and text.endswith('"')


def _postscript(response: str, kwargs: Kwargs) -> bool:
    marker = string(kwargs, "postscript_marker")
    letters = [re.escape(letter) for letter in marker if letter.isalpha()]
    dotted = r"\.?\s?".join(letters) if marker.upper().startswith("P.") else re.escape(marker)
    return re.search(rf"(?:^|\s){dotted}", response, re.IGNORECASE) is not None


def _sections(response: str, kwargs: Kwargs) -> bool:
    splitter = re.escape(string(kwargs, "section_spliter").strip())
    return len(re.findall(rf"\b{splitter}\s+\d+", response)) >= integer(kwargs, "num_sections")


def _json(response: str, kwargs: Kwargs) -> bool:
    text = re.sub(r"^```\w*\n|\n?```$", "", response.strip())
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _two_responses(response: str, kwargs: Kwargs) -> bool:
    parts = [part.strip() for part in response.split("******")]
    inner = [part for part in parts if part]
    return len(inner) == 2 and all(parts[1:-1]) and inner[0] != inner[1]


FORMAT: tuple[Verifier, ...] = (
    Verifier(
        "punctuation:no_comma", lambda response, kwargs: "," not in response, lambda kwargs: "Do not use any commas."
    ),
    Verifier("startend:quotation", _quotation, lambda kwargs: "Put the whole answer in double quotation marks."),
    Verifier(
        "startend:end_checker",
        lambda response, kwargs: (
            response.strip().strip('"').rstrip().lower().endswith(string(kwargs, "end_phrase").strip().lower())
        ),
        lambda kwargs: (
            f'End the answer with exactly this phrase and nothing after it: "{string(kwargs, "end_phrase")}"'
        ),
    ),
    Verifier(
        "detectable_content:number_placeholders",
        lambda response, kwargs: len(re.findall(r"\[[^\[\]]*\]", response)) >= integer(kwargs, "num_placeholders"),
        lambda kwargs: (
            f"Use at least {integer(kwargs, 'num_placeholders')} placeholders in square brackets, such as [name]."
        ),
    ),
    Verifier(
        "detectable_content:postscript",
        _postscript,
        lambda kwargs: f'Add a postscript at the end that starts with "{string(kwargs, "postscript_marker")}".',
    ),
    Verifier(
        "detectable_format:number_bullet_lists",
        lambda response, kwargs: len(_BULLET.findall(response)) == integer(kwargs, "num_bullets"),
        lambda kwargs: (
            f"Use exactly {integer(kwargs, 'num_bullets')} bullet points, each on a line starting with '* '."
        ),
    ),
    Verifier(
        "detectable_format:number_highlighted_sections",
        lambda response, kwargs: (
            sum(bool(text.strip()) for text in [first or second for first, second in _HIGHLIGHT.findall(response)])
            >= integer(kwargs, "num_highlights")
        ),
        lambda kwargs: f"Highlight at least {integer(kwargs, 'num_highlights')} passages like this: *highlighted*.",
    ),
    Verifier(
        "detectable_format:title",
        lambda response, kwargs: any(title.strip() for title in _TITLE.findall(response)),
        lambda kwargs: "Give it a title in double angle brackets, such as <<title>>.",
    ),
    Verifier(
        "detectable_format:multiple_sections",
        _sections,
        lambda kwargs: (
            f"Divide the answer into {integer(kwargs, 'num_sections')} sections and head each with "
            f'"{string(kwargs, "section_spliter")} X", X being its number.'
        ),
    ),
    Verifier("detectable_format:json_format", _json, lambda kwargs: "Answer with valid JSON and nothing else."),
    Verifier(
        "detectable_format:constrained_response",
        lambda response, kwargs: any(answer in response for answer in _RESPONSES),
        lambda kwargs: f"Answer with one of these: {' '.join(repr(answer) for answer in _RESPONSES)}",
    ),
    Verifier(
        "combination:repeat_prompt",
        lambda response, kwargs: (
            response.strip().lower().startswith(string(kwargs, "prompt_to_repeat").strip().lower())
        ),
        lambda kwargs: (
            "First repeat this request word for word, then answer it, saying nothing before it: "
            f'"{string(kwargs, "prompt_to_repeat")}"'
        ),
    ),
    Verifier(
        "combination:two_responses",
        _two_responses,
        lambda kwargs: "Give two different answers and separate them with six asterisks: ******",
    ),
)
