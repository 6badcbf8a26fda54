"""The messages between the engine and a node: JSON in which each long text is named by its hash and sent only once."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from flowevolve._util.json_types import JSON
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.evaluators import Job, Served, TrustedCall
from flowevolve.sandbox.inside.wire import Request
from flowevolve.sandbox.outcome import Outcome


class Key(NamedTuple):
    """The work that a job is for, and which attempt at it this is."""

    run: str
    item: str
    stage: str
    case: str
    number: int
    """The job's number among all of the engine's, because a case may need several programs."""
    epoch: int
    """How often a slot has been leased for the job, this time included."""


@dataclass(frozen=True, slots=True)
class Answer:
    key: Key
    outcomes: list[Outcome]


@dataclass(frozen=True, slots=True)
class Reply:
    """A node's reply to a batch: answers, or why there are none."""

    answers: Sequence[Answer] = ()
    missing: Sequence[str] = ()
    """The hashes of texts that the node does not have. If there are any, nothing of the batch was run."""
    broken: str | None = None
    """Why the node can't run programs any more."""


class MissingTextsError(Exception):
    """A batch names texts that are not known here."""

    def __init__(self, hashes: Sequence[str]) -> None:
        super().__init__(f"{len(hashes)} texts are not known")
        self.hashes = hashes


def pack_batch(jobs: Iterable[tuple[Key, Job | TrustedCall]], known: Container[str]) -> tuple[bytes, set[str]]:
    """Pack a batch of jobs for a node that knows some texts; returns the message, and the hashes of all texts that it
    needs.
    """
    texts: dict[str, str] = {}
    batch = [_packed(key, job, texts) for key, job in jobs]
    new = {name: text for name, text in texts.items() if name not in known}
    return json.dumps({"texts": new, "jobs": batch}).encode(), set(texts)


def _packed(key: Key, job: Job | TrustedCall, texts: dict[str, str]) -> JSON:
    if isinstance(job, TrustedCall):
        return {"key": list(key), "call": asdict(job)}
    asked = _named(job.settings, job.request, texts)
    served = None if job.served is None else _named(job.served.settings, job.served.request, texts)
    return {"key": list(key), "asked": asked, "served": served, "runs": job.runs, "pinned": job.pinned}


def _named(settings: SandboxSettings, request: Request, texts: dict[str, str]) -> list[JSON]:
    """The hashes of the texts that make up a request: settings, limits, arguments and source."""
    fields = {name: getattr(request, name) for name in Request.__slots__}
    limits = json.dumps({**fields, "source": "", "arguments": None})
    parts = (settings.model_dump_json(), limits, json.dumps(request.arguments), request.source)
    names = [sha256(part.encode("utf-8", "surrogatepass")).hexdigest() for part in parts]
    texts.update(zip(names, parts, strict=True))
    return list(names)


class Texts:
    """The most recently used texts that a node knows, by their hashes."""

    def __init__(self, slots: int, most: int) -> None:
        """``slots`` is the node's number of slots, ``most`` how many characters of texts are kept."""
        self._slots = slots
        self._most = most
        self._texts: dict[str, str] = {}
        self._characters = 0
        self._settings: dict[str, SandboxSettings] = {}

    def read_batch(self, message: bytes) -> list[tuple[Key, Job | TrustedCall]]:
        """Read the jobs of a batch, and keep its new texts.

        Raises:
            MissingTextsError: if it names texts that are not known.
        """
        batch = json.loads(message)
        for name, text in batch["texts"].items():
            self._keep(name, text)
        programs = [job for job in batch["jobs"] if "call" not in job]
        named = {name for job in programs for name in (*job["asked"], *(job["served"] or ()))}
        if missing := named - self._texts.keys():
            raise MissingTextsError(sorted(missing))
        jobs = [
            (
                Key(*job["key"]),
                TrustedCall(**job["call"])
                if "call" in job
                else self._job(job["asked"], job["served"], job["runs"], pinned=job["pinned"]),
            )
            for job in batch["jobs"]
        ]
        while self._characters > self._most:
            oldest = next(iter(self._texts))
            self._characters -= len(self._texts.pop(oldest))
        return jobs

    def _job(self, asked: Sequence[str], served: Sequence[str] | None, runs: int, *, pinned: bool) -> Job:
        beside = None if served is None else Served(*self._request(*served))
        return Job(*self._request(*asked), runs=runs, pinned=pinned, served=beside)

    def _keep(self, name: str, text: str) -> None:
        if name not in self._texts:
            self._characters += len(text)
            self._texts[name] = text

    def _request(self, settings: str, limits: str, arguments: str, source: str) -> tuple[SandboxSettings, Request]:
        text = self._used(settings)
        if settings not in self._settings:
            self._settings[settings] = for_node(text, self._slots)
        request = Request(**json.loads(self._used(limits)))
        given = json.loads(self._used(arguments))
        return self._settings[settings], replace(request, source=self._used(source), arguments=given)

    def _used(self, name: str) -> str:
        """The text of this hash, which becomes the most recently used one."""
        text = self._texts[name] = self._texts.pop(name)
        return text


def for_node(settings: str, slots: int) -> SandboxSettings:
    """The engine's settings, given as JSON, adapted to a node with this many slots."""
    given = SandboxSettings.model_validate_json(settings)
    return given.model_copy(update={"on": "here", "concurrency": slots})


def pack_reply(reply: Reply) -> bytes:
    answers = [[list(answer.key), [_plain(outcome) for outcome in answer.outcomes]] for answer in reply.answers]
    return json.dumps({"answers": answers, "missing": list(reply.missing), "broken": reply.broken}).encode()


def _plain(outcome: Outcome) -> dict[str, JSON]:
    return {**outcome.to_json(), "samples": [list(sample) for sample in outcome.samples]}


def read_reply(message: bytes) -> Reply:
    reply = json.loads(message)
    answers = [
        Answer(Key(*key), [Outcome(**{**each, "samples": tuple(map(tuple, each["samples"]))}) for each in outcomes])
        for key, outcomes in reply["answers"]
    ]
    return Reply(answers, reply["missing"], reply["broken"])


def pack_keys(keys: Iterable[Key]) -> bytes:
    return json.dumps([list(key) for key in keys]).encode()


def read_keys(message: bytes) -> list[Key]:
    return [Key(*key) for key in json.loads(message)]
