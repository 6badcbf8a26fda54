"""Finds the commits that have changed measured code.

A commit that changes measured code but no figure, for example the words of an error, says so in a trailer of its
message: ``Figures-unchanged: HOW THIS WAS CHECKED``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from bench._lib.paths import ROOT

UNCHANGED = "Figures-unchanged"
"""The trailer of a commit's message that says how its author checked that no figure has changed."""


def git(*arguments: str) -> str:
    """The output of a git command; empty if there is no git or no history, or if the command fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def commits(paths: Sequence[str], since: str | None = None) -> Sequence[tuple[str, str]]:
    """The commits that changed any of these paths (git pathspecs), newest first: those after commit ``since``, or all.
    Each comes with the text of its trailer ``Figures-unchanged``, which is empty if the commit may change figures.
    """
    trailer = f"%(trailers:key={UNCHANGED},valueonly,unfold,separator=%x20)"
    wanted = "HEAD" if since is None else f"{since}..HEAD"
    lines = git("log", f"--format=%h {trailer}", wanted, "--", *paths).splitlines()
    return [(commit, checked.strip()) for commit, _, checked in (line.partition(" ") for line in lines)]


def last_change(paths: Sequence[str]) -> str:
    """The last commit that may have changed the figures that these paths decide; empty if unknown."""
    return next((commit for commit, checked in commits(paths) if not checked), "")
