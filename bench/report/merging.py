"""What merging edits is worth in time and tokens, by runs without it and by Combee, which merges, too."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content, between
from bench.quality import beside
from bench.quality.section import share_of, tokens_between, tokens_to_score

SINGLE = "one validation for each edit"
"""The default that does not merge edits, as `bench.quality` calls it."""
WITHOUT = """\
[Without merging and validating edits together]({folder}quality_without.md) the defaults take, in {worlds} worlds,
{single} of our lockstep's time and about {single_tokens} of its tokens, instead of {default} and {default_tokens}."""
MERGED = """\
[Combee as published]({folder}quality_others.md) (lockstep, 10 or 40 reflections merged) {ahead}."""


def merging(without: Content, others: Content, folder: str) -> str:
    """What merging edits is worth, with links to pages in ``folder``; leaves out what was not measured."""
    return " ".join(filter(None, (without_merging(without, folder), _combee(others, folder))))


def without_merging(without: Content, folder: str) -> str:
    """What merging is worth by runs of our own engine without it; empty if these were not measured."""
    single, default = (
        [row for row in without["rows"] if row["method"] == each] for each in (SINGLE, without["method"])
    )
    if not single:
        return ""
    return WITHOUT.format(
        folder=folder,
        worlds=len(single),
        single=_times(single),
        single_tokens=tokens_between([*map(tokens_to_score, single)]),
        default=_times(default),
        default_tokens=tokens_between([*map(tokens_to_score, default)]),
    )


def _times(rows: Sequence[Content]) -> str:
    found = [row["time_to_sync_held_out"]["median"] for row in rows]
    return between(*map(share_of, (min(found), max(found))))


def _combee(others: Content, folder: str) -> str:
    """What Combee as published shows about merging; empty if that was not measured."""
    if not any(row["method"] in beside.PUBLISHED for row in others["rows"]):
        return ""
    return MERGED.format(ahead=beside.as_published(others), folder=folder)
