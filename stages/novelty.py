"""Rejects programs before they are run because they are too similar to others: by their lines, by embeddings, or by the
verdict of a model.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from pydantic import Field

from flowevolve._util.clock import in_thread
from flowevolve._util.json_types import JSON
from flowevolve._util.settings import Settings
from flowevolve.core.artifact import Artifact
from flowevolve.core.context import StageContext
from flowevolve.core.model import LLMError
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Attributes, Record
from flowevolve.experience.embedders import Embedder, Vector
from flowevolve.experience.settings import EmbeddingSettings
from flowevolve.policies.similarity import cosine
from flowevolve.prompts.novelty import SAME, novelty_prompt, read_novelty
from flowevolve.stages.asking import try_asking

ROLE = "novelty"
"""The LLM role of the judge, and the agent under which its tokens are counted."""
_NEWEST = 1000
"""If there are more programs than this, only the newest are compared."""
_EMBEDDED_CHARACTERS = 24_000
_DIGITS = 5

By = Literal["text", "embedding", "judge"]


class NoveltySettings(Settings):
    """Which programs are not run because they are too similar to others that work."""

    by: Literal["none"] | By = "none"
    """How similarity is judged. ``text``: by the share of equal lines; ``embedding``: by the cosine of embeddings;
    ``judge``: by the role ``novelty``.
    """
    threshold: float = Field(default=0.99, gt=0, le=1)
    """A program with at least this share, or cosine, is too similar. A judge is asked whatever the share is."""
    compared: int = Field(default=3, gt=0)
    """With how many programs a new one is compared: those that share the most lines with it."""
    tries: int = Field(default=1, gt=0)
    """How many programs are requested at most, each a proposal, until one is new."""
    embedding: EmbeddingSettings = EmbeddingSettings()
    """With ``embedding``: the model that turns programs into vectors."""

    @property
    def roles(self) -> Sequence[str]:
        """The LLM roles that are called."""
        match self.by:
            case "embedding":
                return self.embedding.roles
            case "judge":
                return (ROLE,)
            case _:
                return ()

    def make(self, statement: str) -> Novelty | None:
        """Make the check of programs for a task with this statement; None if there is none.

        Raises:
            InputError: if the embedder needs a package that is not installed.
        """
        if self.by == "none":
            return None
        embedder = self.embedding.make() if self.by == "embedding" else None
        return Novelty(self.by, self, statement, embedder)


class Compared(Record, kind="novelty.compared"):
    """The programs with which a new one is compared, and the share of lines that each has in common with it."""

    programs: tuple[str, ...]
    shares: tuple[float, ...]


class Embedded(Attributes):
    """The vector of a program, and the name of the embedder that made it."""

    embedding: Vector = ()
    embedder: str = ""


@dataclass(frozen=True, slots=True)
class Like:
    """The program to which another is too similar."""

    program: str
    similarity: float
    reason: str


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of checking a program: to which one it is too similar, if any, and attributes to give to it."""

    like: Like | None = None
    attributes: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Novelty:
    """Checks programs before they are run. If a call fails, or a judge's reply can't be read, the program counts as
    new.
    """

    by: By
    settings: NoveltySettings
    statement: str
    embedder: Embedder | None = None

    async def look(self, artifact: Artifact, parent: Candidate, context: StageContext) -> Looked:
        """Compare a program that is to be proposed with those in the pool that work.

        The choice of programs is logged for the item, so that a resumed run finds the replies for which it paid.
        """
        programs = _working(artifact, context)

        async def make() -> Compared:
            return await in_thread(_most_alike, artifact, programs, self.settings.compared)

        compared = await context.once(Compared, make)
        others = [context.pool[name] for name in compared.programs]
        match self.by:
            case "text":
                return Looked(self._too_much(others, compared.shares, "of its lines are those of"))
            case "embedding":
                return await self._by_embedding(artifact, others, context)
            case "judge":
                return await self._by_judge(artifact, parent, others, compared.shares, context)

    def _too_much(self, others: Sequence[Candidate], similar: Sequence[float], words: str) -> Like | None:
        place = max(range(len(others)), key=similar.__getitem__, default=None)
        if place is None or similar[place] < self.settings.threshold:
            return None
        return Like(others[place].id, similar[place], f"{similar[place]:.4g} {words} {others[place].id}")

    async def _by_embedding(self, artifact: Artifact, others: Sequence[Candidate], context: StageContext) -> Looked:
        """Compare by embeddings. Programs that were checked before carry their vectors, so only others are embedded."""
        assert self.embedder is not None, "settings that compare by embeddings make an embedder"
        name = self.embedder.name
        known = {each.id: noted.embedding for each in others if (noted := Embedded.of(each)).embedder == name}
        unknown = [each for each in others if each.id not in known]
        texts = [_text(artifact), *(_text(each.artifact) for each in unknown)]
        try:
            vector, *found = await self.embedder.vectors(texts, context)
        except LLMError as error:
            context.log("reply.missing", agent=ROLE, role=self.settings.embedding.role, error=str(error))
            return Looked()
        known |= {each.id: vector for each, vector in zip(unknown, found, strict=True)}
        cosines = [cosine(vector, known[each.id]) if len(vector) == len(known[each.id]) else 0.0 for each in others]
        noted = Embedded(embedding=tuple(round(each, _DIGITS) for each in vector), embedder=name)
        return Looked(self._too_much(others, cosines, "is the cosine with"), noted.to_json())

    async def _by_judge(
        self,
        artifact: Artifact,
        parent: Candidate,
        others: Sequence[Candidate],
        shares: Sequence[float],
        context: StageContext,
    ) -> Looked:
        if not others:
            return Looked()
        prompt = novelty_prompt(context.templates, self.statement, artifact, [each.artifact for each in others])
        verdict = await try_asking(context, ROLE, prompt, read_novelty, agent=ROLE, candidate=parent.id)
        like = Like(others[0].id, shares[0], "the judge calls it the same") if verdict == SAME else None
        return Looked(like)


def _working(artifact: Artifact, context: StageContext) -> list[Candidate]:
    """The programs of all pools that work, newest first. Of those with the same text, only the oldest is in the list,
    in the place of the newest.
    """
    pool = context.pool
    newest = deque[Candidate](maxlen=_NEWEST)
    newest.extend(
        each
        for name, each in pool.candidates()
        if name is not None
        and each.artifact.keys() == artifact.keys()
        and pool.status(each.id) in ("confirmed", "speculative")
    )
    return list({each.artifact.id: each for each in reversed(newest)}.values())


def _most_alike(artifact: Artifact, programs: Sequence[Candidate], most: int) -> Compared:
    """The programs that share the most lines with this one; of equals, the newest. ``programs`` are newest first."""
    shares = [(_share(artifact, each.artifact), each.id) for each in programs]
    chosen = sorted(shares, key=lambda each: -each[0])[:most]
    return Compared(programs=tuple(name for _, name in chosen), shares=tuple(share for share, _ in chosen))


def _share(one: Artifact, other: Artifact) -> float:
    """The share of lines that two programs have in common, from 0 to 1. White space around lines and empty lines are
    ignored.
    """
    first, second = _lines("\n".join(one.values())), _lines("\n".join(other.values()))
    count = first.total() + second.total()
    return 2 * (first & second).total() / count if count else 1.0


@lru_cache(maxsize=2 * _NEWEST)
def _lines(text: str) -> Counter[str]:
    stripped = (line.strip() for line in text.split("\n"))
    return Counter(line for line in stripped if line)


def _text(artifact: Artifact) -> str:
    """The part of a program that is embedded: embedding models take no more than a few thousand tokens."""
    return "\n".join(artifact.values())[:_EMBEDDED_CHARACTERS]
