"""Branching a new run off a candidate of another one: the same configuration, begun with that candidate's texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.config.run import BranchSettings, Config, parse_recorded, with_overrides
from flowevolve.core.event_kinds import CandidateProposed, PoolCommitted
from flowevolve.core.logged_changes import LoggedAdd
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.runner.plan import ProvidedObjects, make_plan

FEW = 20
"""Candidates that are all named where one is asked for that is none of them."""


def branch_config(directory: Path, candidate: str, overrides: Sequence[str] = ()) -> Config:
    """The configuration of the run in a directory, with overrides ``key=value``, begun with a candidate's texts.

    The run may be going on, or have ended in whatever way. The new one shares nothing with it: not its pool, and not
    the pool that it was itself started from.

    Raises:
        InputError: if there is no such run or candidate, the run was given its task or staleness policy as an object,
            or an override is wrong.
    """
    with RecordedRun(directory) as recorded:
        given = sorted(recorded.given or ())
        if given:
            raise InputError(
                f"{directory}: this run's {' and '.join(given)} was given as an object; branch it from Python: start "
                "its script with the candidate's texts as the prompt, or as what your task's seed() returns"
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
    """Write the directory of a run that is still to begin, once its configuration has turned out to be sound.

    Raises:
        InputError: if the configuration can't be run, or there is a run in the directory already.
    """
    make_plan(config, ProvidedObjects())
    RunDirectory(out, config.model_dump(mode="json"), sync=config.journal.sync).close()


def _texts(recorded: RecordedRun, candidate: str) -> dict[str, str]:
    """The texts of a candidate by component.

    Raises:
        InputError: if there is none of this name, or a text is one that no configuration can hold.
    """
    known: list[str] = []
    for event in recorded.events_of(CandidateProposed):
        if event.candidate == candidate:
            found = dict(event.proposal().artifact)
            break
        known.append(event.candidate)
    else:
        which = did_you_mean(candidate, known) if len(known) < FEW else f"the last of {len(known)} is {known[-1]!r}"
        raise InputError(f"{recorded.path}: has no candidate {candidate!r}; {which}")
    try:
        "".join([*found, *found.values()]).encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{recorded.path}: a text of {candidate} holds half of a character, which no configuration can hold; "
            "branch at another candidate"
        ) from None
    return found
