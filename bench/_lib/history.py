"""Finds the commits that have changed measured code.

A commit that changes measured code but no figure, for example the words of an error, says so in a trailer of its
message: ``Figures-unchanged: HOW THIS WAS CHECKED``. If it changes the figures of some benches only, another trailer
names the benches whose figures it leaves: ``Figures-unchanged-of: NAME, NAME: HOW THIS WAS CHECKED``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence

from bench._lib.paths import ROOT

UNCHANGED = "Figures-unchanged"
"""The trailer of a commit's message that says how its author checked that no figure has changed."""
UNCHANGED_OF = f"{UNCHANGED}-of"
"""The same for the figures of some benches only, whose names come first."""


def git(*arguments: str) -> str:
    """The output of a git command; empty if there is no git or no history, or if the command fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def commits(paths: Sequence[str], since: str | None = None, bench: str = "") -> Sequence[tuple[str, str]]:
    """The commits that changed any of these paths (git pathspecs), newest first: those after commit ``since``, or all.
    Each comes with how it was checked that no figure of this bench has changed, by a trailer of the commit; empty if
    the commit may change figures.
    """
    wanted = "HEAD" if since is None else f"{since}..HEAD"
    form = f"%h%x00{_trailer(UNCHANGED)}%x00{_trailer(UNCHANGED_OF)}"
    found = []
    for line in git("log", f"--format={form}", wanted, "--", *paths).splitlines():
        commit, of_all, of_some = line.split("\0")
        of_bench = (checked for names, checked in _parted(of_some) if bench in names)
        found.append((commit, of_all.replace("\1", " ").strip() or " ".join(of_bench)))
    return found


def _trailer(key: str) -> str:
    return f"%(trailers:key={key},valueonly,unfold,separator=%x01)"


def _parted(trailers: str) -> Iterator[tuple[Sequence[str], str]]:
    """The names of benches in each trailer about some of them, and how that was checked."""
    for trailer in trailers.split("\1"):
        names, _, checked = trailer.partition(":")
        yield [name.strip() for name in names.split(",")], checked.strip()


def last_change(paths: Sequence[str]) -> str:
    """The last commit that may have changed the figures that these paths decide; empty if unknown."""
    return next((commit for commit, checked in commits(paths) if not checked), "")
