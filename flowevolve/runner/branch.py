"""Branching a new run off a candidate of another one: the same configuration, with the candidate's texts as seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.config.run import Config, parse_recorded, with_overrides
from flowevolve.config.sections import BranchSettings
from flowevolve.core.event_kinds import CandidateProposed, PoolCommitted
from flowevolve.core.logged_changes import LoggedAdd
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.runner.plan import ProvidedObjects, make_plan

FEW = 20
"""In a run with fewer candidates than this, an error about an unknown one suggests the closest, or lists them all."""


def branch_config(directory: Path, candidate: str, overrides: Sequence[str]) -> Config:
    """The configuration of the run in a directory, with ``key=value`` overrides and a candidate's texts as the seed.

    The run may be going on, or have ended in any way. The new run takes over neither that run's pool nor the pool that
    it was itself started from.

    Raises:
        InputError: if there is no such run or candidate, the run was given its task or staleness policy as an object,
            or an override is wrong.
    """
    with RecordedRun(directory) as recorded:
        given = sorted(recorded.given or ())
        if given:
            raise InputError(
                f"{directory}: this run's {' and '.join(given)} {'was' if len(given) == 1 else 'were'} given in "
                "Python, so branch it from there: start its script with the candidate's texts as the prompt, or as "
                "what your task's seed() returns"
            )
        texts = _texts(recorded, candidate)
        before = parse_recorded(recorded.config, f"{directory}/config.toml")
        version = next(
            (
                commit.version
                for commit in recorded.events_of(PoolCommitted)
                if any(isinstance(change, LoggedAdd) and change.add == candidate for change in commit.changes)
            ),
            None,
        )
    point = BranchSettings(run=str(directory), candidate=candidate, version=version, texts=texts)
    return with_overrides(before.model_copy(update={"start": None, "branch": point}), overrides)


def write_branch(config: Config, out: Path) -> None:
    """Check that the configuration can be run, and write the directory of a run that has yet to begin.

    Raises:
        InputError: if the configuration can't be run, or there is a run in the directory already.
    """
    make_plan(config, ProvidedObjects())
    RunDirectory(out, config.model_dump(mode="json"), sync=config.journal.sync).close()


def _texts(recorded: RecordedRun, candidate: str) -> dict[str, str]:
    """The texts of a candidate by component.

    Raises:
        InputError: if there is no such candidate, or a configuration can't hold one of its texts.
    """
    known: list[str] = []
    for event in recorded.events_of(CandidateProposed):
        if event.candidate == candidate:
            found = dict(event.proposal().artifact)
            break
        known.append(event.candidate)
    else:
        which = did_you_mean(candidate, known) if len(known) < FEW else f"the last of {len(known)} is {known[-1]!r}"
        raise InputError(f"{recorded.path} has no candidate {candidate!r}; {which}")
    try:
        "".join([*found, *found.values()]).encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{recorded.path}: a text of {candidate} holds half of a character, which no configuration can hold; "
            "branch at another candidate"
        ) from None
    return found
