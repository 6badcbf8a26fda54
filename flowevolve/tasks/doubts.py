"""Warns about what is odd in a prompt and its rows, but not certainly wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve._util.user_warnings import warn_user
from flowevolve.core.task import Dataset, Example

ANSWERS = frozenset(
    {"answer", "answers", "label", "labels", "target", "targets", "expected", "gold", "output", "reference", "solution"}
)
"""Columns with these names, in upper or lower case, are taken for answers, which the model is not to see."""


def warn_of_doubts(prompt: Mapping[str, str], data: Dataset, places: Mapping[str, str], *, val_given: bool) -> None:
    """Warn the user about what is doubtful. ``places`` says where the user has each example's row, and ``val_given``
    whether the user chose the rows for validation.
    """
    shared = _shared_rows(data, places, val_given=val_given)
    doubts = (*_blank_answers(data, places), *shared, *_odd_texts(prompt, data))
    for doubt in doubts:
        warn_user(doubt)


def _blank_answers(data: Dataset, places: Mapping[str, str]) -> Iterator[str]:
    """Find columns with answers that are blank in some rows. Metrics often take such a row for solved, since ``"" in
    output`` is true of any output.
    """
    rows = list(data)
    for name in sorted({name for row in rows for name in row.data if name.lower() in ANSWERS}):
        blank = [row.id for row in rows if _blank(row.data.get(name))]
        if 0 < len(blank) < len(rows):
            yield (
                f"column {name!r} is blank in {len(blank)} of {len(rows)} rows (such as {places[blank[0]]}); make "
                "sure that the metric can handle such rows"
            )


def _shared_rows(data: Dataset, places: Mapping[str, str], *, val_given: bool) -> Iterator[str]:
    """Find rows of validation or test that prompts were also made from, so that scores on them are too high."""
    apart = "put each row into one split only"
    alone = apart if val_given else "remove the duplicates from train, or give rows for validation as val="
    for rows, what, others, whose, mend in (
        (data.val, "rows for validation", data.train, "that prompts are made from", alone),
        (data.test, "rows of test", (*data.train, *data.val), "of train and val", apart),
    ):
        known = {_content(row): row for row in others}
        shared = [(row, known[_content(row)]) for row in rows if _content(row) in known]
        if shared:
            such = " and ".join(places[row.id] for row in shared[0])
            yield (
                f"some {what} ({len(shared)} of {len(rows)}, such as {such}) are also among those {whose}, so their "
                f"scores will be too high; {mend}"
            )


def _odd_texts(prompt: Mapping[str, str], data: Dataset) -> Iterator[str]:
    columns: Sequence[str] = list(data.train[0].data) if data.train else []
    for component, text in prompt.items():
        where = "prompt" if len(prompt) == 1 else f"prompt: {component}"
        if not text.strip():
            yield f"{where} is blank, and some servers refuse an empty message; describe the model's job in it"
        for name in columns:
            if f"{{{name}}}" in text:
                yield (
                    f"{where}: {{{name}}} is sent unchanged, as nothing is filled into a prompt; the row follows the "
                    f'prompt, in the form that input= sets, such as input="{{{name}}}"'
                )


def _content(row: Example) -> str:
    return json.dumps(dict(row.data), sort_keys=True)


def _blank(value: JSON) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
