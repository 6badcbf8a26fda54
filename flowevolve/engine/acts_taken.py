"""What acts hold for the rest of a run, also once it was interrupted."""

from __future__ import annotations

from dataclasses import dataclass, field

from flowevolve._util.errors import InputError
from flowevolve.core.acts import Approve, Comment, Inject, RaiseBudget, Veto
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import CandidateProposed, RunSteered
from flowevolve.core.pool import Pool


@dataclass(frozen=True, slots=True)
class Submission:
    """A candidate that an act sends into the run: its texts, and the ids of the candidates that it was made from."""

    artifact: Artifact
    parents: tuple[str, ...]

    @classmethod
    def of(cls, act: Inject | Approve, pool: Pool) -> Submission:
        """Raises:
        InputError: if the pool has not, or no longer, the candidate that the act names.
        """
        if isinstance(act, Inject):
            if act.parent not in pool or not pool.keeps(act.parent):
                raise InputError(f"inject: the pool has no candidate {act.parent!r} that this was edited from")
            origin = pool[act.parent].artifact
            return cls(Artifact({**origin, **act.texts}, origin.kind), (act.parent,))
        rejected = pool.rejected(act.candidate)
        if rejected is None:
            raise InputError(f"approve: {act.candidate} was rejected too long ago; inject its texts instead")
        return cls(rejected.artifact, tuple(name for name in rejected.parents if pool.keeps(name)))


def takes_back(pool: Pool, candidate: str) -> bool:
    """Whether approving a candidate takes back its veto. One that a stage turned down since is sent into the run."""
    return pool.vetoed(candidate) and pool.keeps(candidate)


@dataclass(slots=True)
class ActsTaken:
    """What the events of a run say of the acts on it: a function of the log."""

    comments: list[Comment] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    """Those that were raised, as `Budget.by_name` has them."""
    vetoes: dict[str, bool] = field(default_factory=dict)
    """By candidate: whether its veto stands."""
    submissions: list[tuple[RunSteered, Submission]] = field(default_factory=list)
    """Candidates that were to be sent into the run, and of which nothing is known to have come there yet."""

    def take(self, steered: RunSteered, pool: Pool) -> None:
        """An act, with the pool as it was then."""
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
        """A candidate from outside was handed to its stage."""
        came = Submission(Artifact(proposal.components, proposal.kind_of_artifact), proposal.parents)
        for place, (_, submission) in enumerate(self.submissions):
            if submission == came:
                del self.submissions[place]
                return
