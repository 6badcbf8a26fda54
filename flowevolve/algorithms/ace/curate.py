"""ACE's curator: works lessons into the playbook with small operations, and merges bullets that say the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import partial

from flowevolve._util.clock import in_thread
from flowevolve._util.tasks import run_all
from flowevolve.algorithms.ace.payloads import Curation, Edit, Lesson, Refinement
from flowevolve.algorithms.ace.playbook import Bullet, Operation, render
from flowevolve.algorithms.ace.playbook_reading import Reader
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.model import CHARS_PER_TOKEN, LLMError
from flowevolve.core.record import Record
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.experience.embedders import Embedder
from flowevolve.policies.similarity import near_groups
from flowevolve.prompts.playbook import (
    CuratorRequest,
    curate_prompt,
    gather_prompt,
    merge_prompt,
    parse_curator_requests,
    parse_lessons,
    parse_merged,
)
from flowevolve.prompts.reading.instructions import is_whole
from flowevolve.stages import scan
from flowevolve.stages.asking import Asker, ask, read_reply
from flowevolve.stages.comments import commented_prompt

_DIAGNOSES = 20
"""A curator is shown at most this many diagnoses."""


@dataclass(frozen=True)
class Curate:
    """Has one call turn lessons into operations. If the call fails, the lessons enter as they are, so that none is
    lost.

    The lessons of more than ``fan_in`` samples are combined first, each sample's in ``copies`` groups.
    """

    reader: Reader
    sections: Sequence[str]
    fan_in: int | None = None
    copies: int = 2

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        curation = item.expect(Curation)
        version, bullets = self.reader.now(context)
        context.begin(Cost(proposals=1))
        operations = await self._operations(bullets, curation.lessons, context)
        sources = tuple(dict.fromkeys(lesson.example_id for lesson in curation.lessons))
        reads = {name: digest for lesson in curation.lessons for name, digest in lesson.reads.items()}
        yield Emit(
            Edit(tuple(operations), sources, reads, validate=curation.validate, last=curation.last), version=version
        )

    async def _operations(
        self, bullets: Sequence[Bullet], lessons: Sequence[Lesson], context: StageContext
    ) -> list[Operation]:
        texts = await self._texts(lessons, context)
        shown = render(self.reader.shown(bullets), counters=True)
        tokens = sum(len(bullet.text) for bullet in bullets) // CHARS_PER_TOKEN, self.reader.token_budget
        try:
            written = curate_prompt(context.templates, shown, texts, self.sections, tokens, _diagnoses(lessons))
            prompt = commented_prompt(written, context, None)  # None: a playbook grows out of all before it
            read = partial(parse_curator_requests, template=context.templates["curate"].text)
            requests, unread = await ask(context, "reflection", prompt, read, agent="curate")
        except (UnparsableReplyError, LLMError) as error:
            context.log("curation.failed", error=str(error))
            return [Operation("ADD", self.sections[0], text) for text in texts]
        operations = _operations(requests, bullets, self.sections)
        context.log("curated", operations=len(operations), refused=unread + len(requests) - len(operations))
        return operations

    async def _texts(self, lessons: Sequence[Lesson], context: StageContext) -> list[str]:
        """The texts of the lessons without repeats; uncombined if combining them fails."""
        said = [lesson.texts for lesson in lessons if lesson.texts]
        if self.fan_in is not None and len(said) > self.fan_in:
            rng = context.derive_random("ace.gather", context.item_id)
            gather = partial(_gather, context=context)
            gathered = await scan(said, gather, copies=self.copies, most=self.fan_in, rng=rng)
            context.log("lessons.gathered", samples=len(said), lessons=sum(map(len, gathered)))
            said = list(gathered) or said
        return list(dict.fromkeys(text for texts in said for text in texts))


def _diagnoses(lessons: Sequence[Lesson]) -> list[str]:
    """What was wrong with the answers that the lessons were drawn from, without repeats."""
    said = dict.fromkeys(lesson.diagnosis for lesson in lessons if lesson.texts and lesson.diagnosis)
    return list(said)[:_DIAGNOSES]


async def _gather(samples: Sequence[tuple[str, ...]], name: str, *, context: StageContext) -> tuple[str, ...] | None:
    """The lessons of several samples, combined into one list by a model; None if the call fails or its reply can't be
    read.
    """
    model = context.chat_model(f"gather/{name}", None, role="reflection")
    try:
        asker = Asker("reflection", "gather")
        read = partial(parse_lessons, template=context.templates["gather"].text)
        return await read_reply(context, model.reply, gather_prompt(context.templates, samples), read, asker)
    except (UnparsableReplyError, LLMError) as error:
        context.log("gathering.failed", merge=name, samples=len(samples), error=str(error))
        return None


def _operations(
    requests: Sequence[CuratorRequest], bullets: Sequence[Bullet], sections: Sequence[str]
) -> list[Operation]:
    """The operations that a curator asked for. Those that name a bullet it did not see, or one that an earlier
    operation is about, are left out. An addition to an unknown section goes to the first section.
    """
    digests = {bullet.id: bullet.digest for bullet in bullets}
    free = set(digests)
    operations: list[Operation] = []
    for request in requests:
        if not free.issuperset(request.ids):
            continue
        free.difference_update(request.ids)
        section = request.section if request.section in sections or request.verb != "ADD" else sections[0]
        operations.append(Operation(request.verb, section, request.text, {name: digests[name] for name in request.ids}))
    return operations


class MergeFailed(Record, kind="merge.failed"):
    """Bullets that were not merged, and why."""

    bullets: tuple[str, ...]
    error: str
    unread: tuple[str, ...] = ()
    """The digests of the bullets, if a reply came that can't be read."""


@dataclass(frozen=True)
class Refine:
    """Grow-and-refine: one call per group merges bullets whose embeddings are close to each other into one. If the
    reply can't be read, the same group is not asked about again until one of its bullets changes. This is taken from
    events, so that it holds for a resumed run as well.
    """

    reader: Reader
    threshold: float
    embedder: Embedder
    _unread: dict[frozenset[str], str] = field(default_factory=dict)
    """The item that found out that no reply about a group can be read, by the digests of the group's bullets. If that
    item is interrupted, its work is done again with the replies that it had.
    """

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        validate = item.expect(Refinement).validate
        version, bullets = self.reader.now(context)
        groups = [[bullets[place] for place in group] for group in await self._groups(bullets, context)]
        asked = [group for group in groups if self._unread.get(_digests(group)) in (None, context.item_id)]
        merged = await run_all([partial(self._merge, group, context) for group in asked])
        operations = tuple(operation for operation in merged if operation is not None)
        if not operations and not validate:
            raise Discard("nothing to merge")
        yield Emit(Edit(operations, validate=validate), version=version)

    def apply_event(self, event: Event) -> None:
        """Note the groups about which no reply could be read."""
        match event.body:
            case OwnEvent(kind=MergeFailed.kind, data=data, item=item) if unread := MergeFailed.from_json(data).unread:
                self._unread.setdefault(frozenset(unread), item)
            case _:
                pass

    async def _groups(self, bullets: Sequence[Bullet], context: StageContext) -> list[list[int]]:
        if len(bullets) < 2:
            return []
        try:
            vectors = await self.embedder.vectors([bullet.text for bullet in bullets], context)
        except LLMError as error:
            context.log("refinement.failed", error=str(error))
            return []
        return await in_thread(near_groups, vectors, self.threshold)

    async def _merge(self, group: Sequence[Bullet], context: StageContext) -> Operation | None:
        """The operation that makes one bullet of several; None if the call fails or its reply can't be read."""
        model = context.chat_model(group[0].id, None, role="reflection")
        try:
            texts = [bullet.text for bullet in group]
            read = partial(parse_merged, texts=texts, template=context.templates["merge_notes"].text)
            asker = Asker("reflection", "merge")
            text = await read_reply(
                context, model.reply, merge_prompt(context.templates, texts), read, asker, whole=is_whole
            )
        except (UnparsableReplyError, LLMError) as error:
            unread = tuple(bullet.digest for bullet in group) if isinstance(error, UnparsableReplyError) else ()
            failed = MergeFailed(bullets=tuple(bullet.id for bullet in group), error=str(error), unread=unread)
            context.decide(MergeFailed, lambda: failed, key=group[0].id)
            return None
        return Operation("MERGE", "", text, {bullet.id: bullet.digest for bullet in group})


def _digests(group: Sequence[Bullet]) -> frozenset[str]:
    return frozenset(bullet.digest for bullet in group)
