"""What a proposer may read: earlier harnesses as files in memory, which are a function of a snapshot of the pool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from flowevolve.algorithms.meta_harness.frontier import Result, frontier
from flowevolve.core.acts import Comment
from flowevolve.core.pool import Candidate, Snapshot
from flowevolve.tasks.labelling import COMPONENT

SUMMARY, FRONTIER = "summary.txt", "frontier.txt"
_HITS = 40
"""One search shows at most this many lines."""


def files(snapshot: Snapshot, comments: Sequence[Comment] = ()) -> dict[str, str]:
    """The files' texts by path. None of them has the candidates' scores on the test splits. The summary ends with
    people's ``comments``.
    """
    scored = list(snapshot.candidates("confirmed"))
    invalid = list(snapshot.candidates("rejected"))
    texts = {
        SUMMARY: "\n".join([*map(_line, scored), *map(_invalid_line, invalid), *map(_comment_line, comments)]),
        FRONTIER: "\n".join(map(_line, frontier(scored))),
    }
    for each in [*scored, *invalid]:
        texts[f"harnesses/{each.id}.py"] = each.artifact[COMPONENT]
    texts |= {f"traces/{each.id}.txt": _trace(each) for each in scored}
    texts |= {f"reports/{each.id}.txt": Result.of(each).report for each in invalid}
    return texts


class View:
    """Files that can be listed, read and searched, until ``chars`` characters have been shown in all."""

    def __init__(self, texts: Mapping[str, str], chars: int) -> None:
        self.texts = texts
        self._left = chars

    def list(self, path: str = "") -> str:
        folder = path.strip("./")
        names = sorted(name for name in self.texts if name.startswith(folder))
        return self._within("\n".join(f"{name} ({len(self.texts[name])} characters)" for name in names))

    def read(self, path: str) -> str:
        text = self.texts.get(path.removeprefix("./"))
        return f"there is no file {path!r}; list shows those there are" if text is None else self._within(text)

    def search(self, text: str) -> str:
        """The lines that contain the text, ignoring case, each with its path and number."""
        hits = [
            f"{path}:{number}: {line}"
            for path, content in self.texts.items()
            for number, line in enumerate(content.splitlines(), 1)
            if text and text.lower() in line.lower()
        ]
        more = [f"({len(hits) - _HITS} more)"] if len(hits) > _HITS else []
        return self._within("\n".join(hits[:_HITS] + more) or "found nowhere")

    def _within(self, text: str) -> str:
        shown = text[: self._left]
        self._left -= len(shown)
        return shown if len(shown) == len(text) else f"{shown}\n(cut: that was all you may read)"


def _line(each: Candidate) -> str:
    result = Result.of(each)
    sets = ", ".join(f"{name} {value:.3f}" for name, value in result.accuracy.items())
    parents = f"; from {', '.join(each.parents)}" if each.parents else ""
    context = f"context {result.context_chars:.0f} characters"
    return f"{each.id}: accuracy {result.mean_accuracy:.3f} ({sets}), {context}{parents}"


def _comment_line(each: Comment) -> str:
    subject = f"example {each.example}" if each.candidate is None else each.candidate
    return f"a person says of {subject}: {each.text}"


def _invalid_line(each: Candidate) -> str:
    words = Result.of(each).report.strip().splitlines()
    return f"{each.id}: invalid: {words[-1] if words else 'no report'}"


def _trace(each: Candidate) -> str:
    return "\n".join(json.dumps(mistake, ensure_ascii=False) for mistake in Result.of(each).mistakes)
