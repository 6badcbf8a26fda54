"""The acts on a run that stay in effect for the rest of it, even after an interruption."""

from __future__ import annotations

from dataclasses import dataclass, field

from flowevolve._util.errors import InputError
from flowevolve.core.acts import Approve, Comment, Inject, RaiseBudget, Veto
from flowevolve.core.artifact import Artifact, ArtifactKind
from flowevolve.core.event_kinds import CandidateProposed, RunSteered
from flowevolve.core.pool import Pool


@dataclass(frozen=True, slots=True)
class Submission:
    """A candidate that an act sends into the run: its texts, and the ids of its parents."""

    artifact: Artifact
    parents: tuple[str, ...]

    @classmethod
    def of(cls, act: Inject | Approve, pool: Pool) -> Submission:
        """Raises:
        InputError: if the pool does not have the candidate that the act names, or no longer has it.
        """
        if isinstance(act, Inject):
            if act.parent is None:
                return cls(Artifact(act.texts, _kind(pool)), ())
            if act.parent not in pool or not pool.keeps(act.parent):
                raise InputError(f"inject: candidate {act.parent!r}, which this was edited from, is not in the pool")
            origin = pool[act.parent].artifact
            return cls(Artifact({**origin, **act.texts}, origin.kind), (act.parent,))
        rejected = pool.rejected(act.candidate)
        if rejected is None:
            raise InputError(f"approve: {act.candidate} was rejected too long ago; inject its texts instead")
        return cls(rejected.artifact, tuple(name for name in rejected.parents if pool.keeps(name)))


def _kind(pool: Pool) -> ArtifactKind:
    """What evolves in this run. Raises: InputError if there is no candidate yet from which to tell."""
    for _, candidate in pool.candidates():
        return candidate.artifact.kind
    raise InputError("inject: the run has no candidate yet; try again in a moment")


def takes_back(pool: Pool, candidate: str) -> bool:
    """Whether approving takes back a candidate's veto. If a stage has rejected it since, it is sent in again."""
    return pool.vetoed(candidate) and pool.keeps(candidate)


@dataclass(slots=True)
class ActsTaken:
    """The acts on a run, as its events record them. This is a function of the event log."""

    comments: list[Comment] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    """The raised budget limits, by the names that `Budget.by_name` uses."""
    vetoes: dict[str, bool] = field(default_factory=dict)
    """Whether each candidate is vetoed, by its id."""
    submissions: list[tuple[RunSteered, Submission]] = field(default_factory=list)
    """Candidates that acts sent into the run and that, as far as the log tells, have not arrived there yet."""

    def take(self, steered: RunSteered, pool: Pool) -> None:
        """Record an act. ``pool`` is the pool at the time of the act."""
        if steered.refused is not None:
            self.submissions = [each for each in self.submissions if each[0].act != steered.act]
            return
        match steered.act:
            case Comment() as comment:
                self.comments.append(comment)
            case RaiseBudget() as raised:
                self.limits.update(raised.by_name())
            case Veto(candidate=name):
                self.vetoes[name] = True
            case Approve(candidate=name) if takes_back(pool, name):
                self.vetoes[name] = False
            case (Inject() | Approve()) as act:
                self.submissions.append((steered, Submission.of(act, pool)))
            case _:  # a pause does not outlast the process, nor does a wish to stop
                pass

    def arrived(self, proposal: CandidateProposed) -> None:
        """Record that a candidate from outside was handed to its stage."""
        came = Submission(Artifact(proposal.components, proposal.kind_of_artifact), proposal.parents)
        for place, (_, submission) in enumerate(self.submissions):
            if submission == came:
                del self.submissions[place]
                return
