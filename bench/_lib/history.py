"""Which commits have changed what is measured.

A commit that changes what is measured, but no figure, such as the words of an error, says so in a trailer of its
message, ``Figures-unchanged: HOW THIS WAS CHECKED``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from bench._lib.paths import ROOT

UNCHANGED = "Figures-unchanged"
"""The trailer of a commit's message that says how it was checked that no figure has changed."""


def git(*arguments: str) -> str:
    """What git says; nothing where there is no git, no history, or nothing of that name."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def commits(paths: Sequence[str], since: str | None = None) -> Sequence[tuple[str, str]]:
    """The commits that have changed any of these paths, which are git's pathspecs, newest first: each with how it was
    checked that it changes no figure, which is empty where it may. Those after commit ``since``, or all.
    """
    trailer = f"%(trailers:key={UNCHANGED},valueonly,unfold,separator=%x20)"
    wanted = "HEAD" if since is None else f"{since}..HEAD"
    lines = git("log", f"--format=%h {trailer}", wanted, "--", *paths).splitlines()
    return [(commit, checked.strip()) for commit, _, checked in (line.partition(" ") for line in lines)]


def last_change(paths: Sequence[str]) -> str:
    """The last commit that may have changed what these paths decide; empty where that isn't known."""
    return next((commit for commit, checked in commits(paths) if not checked), "")
