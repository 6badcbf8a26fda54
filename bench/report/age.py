"""How old a result is: which commits have changed what it measures since it was measured.

``python -m bench.report.age`` lists them. A commit that changes what is measured, but no figure, such as the words of
an error, says so itself, in a trailer of its message, ``Figures-unchanged: HOW THIS WAS CHECKED``, and doesn't count;
``--unchanged`` lists those. ``Figures-unchanged-of: NAME, NAME: HOW THIS WAS CHECKED`` says it of some benches alone.
``--mark "why it has not been measured again" NAME…`` marks results as old: their pages then say so, with the reason. A
mark ends when the bench is run again. ``--recount`` counts the commits of all marks anew.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench._lib.history import commits, git
from bench._lib.text import Content
from bench.report.bench import Bench
from bench.report.benches import BENCHES
from bench.report.results import read

MARKS = Path(__file__).with_name("old.json")


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks the result measured at ``commit`` as older than what it measures. ``commits`` is how many commits older it
    was when it was marked, ``changed`` which of the folders and files that it measures these changed, and ``reason``
    why it has not been measured again.
    """

    commit: str
    commits: int
    reason: str
    changed: Sequence[str] = ()

    @property
    def counted(self) -> str:
        """By how many commits the result is older, at least, as there may have been more since it was marked."""
        return f"at least {self.commits} commit{'' if self.commits == 1 else 's'}"


def has_history() -> bool:
    """Whether git is there and knows every commit of this checkout."""
    return git("rev-parse", "--is-shallow-repository") == "false"


def knows(commit: str) -> bool:
    """Whether a commit of this name is in the history of what is checked out."""
    return bool(git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")) and (
        git("merge-base", commit, "HEAD") == git("rev-parse", f"{commit}^{{commit}}")
    )


def changes(bench: Bench, content: Content) -> Sequence[str]:
    """The commits since this result, newest first, that changed what the bench measures and may change its figures."""
    return [commit for commit, checked in _since(bench, content, bench.measures) if not checked]


def held_unchanged(bench: Bench, content: Content) -> Mapping[str, str]:
    """The commits, newest first, that have changed what is measured but no figure, and how that was checked."""
    return {commit: checked for commit, checked in _since(bench, content, bench.measures) if checked}


def changed(bench: Bench, content: Content) -> Sequence[str]:
    """The folders and files that the commits of `changes` have changed."""
    left_out = [path for path in bench.measures if path.startswith(":")]
    found = [path for path in bench.measures if path not in left_out]
    return [path for path in found if any(not checked for _, checked in _since(bench, content, (path, *left_out)))]


def _since(bench: Bench, content: Content, paths: Sequence[str]) -> Sequence[tuple[str, str]]:
    """The commits since this result that changed these paths, each with how it was checked that no figure of the bench
    has changed.
    """
    return commits(paths, content["commit"], bench.name)


def marks() -> Mapping[str, Mark]:
    """The marks by the name of the bench."""
    return {name: Mark(**mark) for name, mark in json.loads(MARKS.read_text(encoding="utf-8")).items()}


def mark_of(bench: Bench, content: Content) -> Mark | None:
    """The mark of a result; one of an earlier result does not count."""
    mark = marks().get(bench.name)
    return mark if mark is not None and mark.commit == content["commit"] else None


def any_old(names: Sequence[str]) -> bool:
    """Whether one of these results is marked."""
    found = ((bench, read(bench.name)) for bench in BENCHES if bench.name in names)
    return any(content is not None and mark_of(bench, content) is not None for bench, content in found)


def the_defaults(names: Sequence[str]) -> str:
    """What the defaults are called in a sentence about these results."""
    return "earlier defaults" if any_old(names) else "the defaults"


def aged() -> Mapping[str, int]:
    """By how many commits each result without a mark is older than what it measures, if it is older."""
    found = {}
    for bench in BENCHES:
        content = read(bench.name)
        if content is not None and mark_of(bench, content) is None and (commits := changes(bench, content)):
            found[bench.name] = len(commits)
    return found


def mark(names: Sequence[str], reason: str) -> None:
    """Mark results as old. Recounts the commits of other marks, and drops those of results that were measured again."""
    kept = {}
    for bench in BENCHES:
        content = read(bench.name)
        if content is None:
            continue
        if bench.name in names:
            known: Mark | None = Mark(content["commit"], 0, reason)
        else:
            known = mark_of(bench, content)
        if known is not None:
            kept[bench.name] = replace(known, commits=len(changes(bench, content)), changed=changed(bench, content))
    MARKS.write_text(json.dumps({name: asdict(each) for name, each in kept.items()}, indent=2) + "\n", encoding="utf-8")


def _unchanged() -> Mapping[str, tuple[str, Sequence[str]]]:
    """The commits of `held_unchanged`, each with how that was checked and the results that are older."""
    found: dict[str, tuple[str, list[str]]] = {}
    for bench in BENCHES:
        content = read(bench.name)
        for commit, checked in ({} if content is None else held_unchanged(bench, content)).items():
            found.setdefault(commit, (checked, []))[1].append(bench.name)
    return found


def main() -> None:
    parser = ArgumentParser(prog="python -m bench.report.age", description=__doc__)
    parser.add_argument("--mark", metavar="REASON", help="mark these results as old, for this reason")
    parser.add_argument("--recount", action="store_true", help="count the commits of all marks anew")
    parser.add_argument("--unchanged", action="store_true", help="list the commits that say they change no figure")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a result; by default all that are old")
    arguments = parser.parse_args()
    if arguments.unchanged:
        for commit, (checked, names) in _unchanged().items():
            print(f"{commit} ({', '.join(names)}): {checked}")
        return
    old = aged()
    if arguments.mark is not None or arguments.recount:
        mark(() if arguments.mark is None else arguments.names or list(old), arguments.mark or "")
        print("now write the pages: make bench-page")
        return
    for bench in BENCHES:
        if bench.name in old and (not arguments.names or bench.name in arguments.names):
            print(f"{bench.name}: {old[bench.name]} commits since have changed {', '.join(bench.measures)}")


if __name__ == "__main__":
    main()
