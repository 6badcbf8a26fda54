"""The task protocol: a task has data, runs one example with an artifact, scores the output and gives feedback on it.

A task knows nothing about algorithms or the engine. It gets an artifact, an example and a way to call an LLM, and
returns a rollout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol, runtime_checkable

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.events import Log
from flowevolve.core.model import Message
from flowevolve.core.payload_kinds import payload
from flowevolve.core.score_trust import ScoreTrust


@payload
@dataclass(frozen=True, slots=True)
class Example:
    """One row of a data set. ``id`` is unique within the task; ``data`` is the row as loaded."""

    id: str
    data: Mapping[str, JSON]

    def __post_init__(self) -> None:
        """Raises: InputError if the id is not text, or the data is not a mapping."""
        if not isinstance(self.id, str):
            raise InputError(
                f"an example's id is {self.id!r} ({type(self.id).__name__}); ids are texts, such as {str(self.id)!r}"
            )
        if not isinstance(self.data, Mapping):
            raise InputError(
                f"example {self.id!r}: its data is a {type(self.data).__name__}; give a mapping, such as "
                'Example("1", {"question": "…"})'
            )


@payload
@dataclass(frozen=True, slots=True)
class Score:
    """The score of one output, with feedback in words that a reflection model can use.

    ``value`` is in [0, 1] for tasks that LLMs answer; problems for programs may have other scales.
    """

    value: float
    feedback: str
    passed: bool
    """Whether the output leaves nothing to improve (GEPA skips a minibatch in which all passed)."""
    failure: str | None = None
    """Why there was nothing to score, in one line; None if there was an output."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Further numbers, such as seconds."""
    measured_on: str | None = None
    """The class of machines that it was measured on, if only scores from the same class are comparable with it."""

    def __post_init__(self) -> None:
        """Convert numbers of other libraries, such as numpy's, to Python's own, which the journal can store.

        Raises:
            TypeError: if ``passed`` is neither true nor false, but for example a word.
        """
        if not _is_truth(self.passed):
            raise TypeError(f"Score: passed is {self.passed!r:.80}; give True or False")
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "passed", bool(self.passed))
        object.__setattr__(self, "metrics", {name: float(number) for name, number in self.metrics.items()})


def _is_truth(value: object) -> bool:
    """Whether a value is True or False, numpy's included, or a number that stands for one."""
    try:
        return value in (True, False)
    except ValueError:  # an array with several values
        return False


@payload
@dataclass(frozen=True, slots=True)
class Call:
    """One LLM call of a rollout: the component whose text it used, its inputs by name, and its output."""

    component: str
    inputs: Mapping[str, str]
    output: str


@payload
@dataclass(frozen=True, slots=True)
class Rollout:
    """The result of running one example with one artifact."""

    example_id: str
    output: str
    score: Score
    calls: tuple[Call, ...] = ()
    """The calls in the order in which they were made. Reflection on a component reads the calls that used it."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """The splits of a task. Minibatches are drawn from ``train``, candidates are scored on ``val``, and evolution never
    sees ``test``.
    """

    train: Sequence[Example]
    val: Sequence[Example]
    test: Sequence[Example] = field(default=())

    def __post_init__(self) -> None:
        """Raises: InputError if a split is not a sequence of examples."""
        for split in ("train", "val", "test"):
            _check_split(split, getattr(self, split))

    def __iter__(self) -> Iterator[Example]:
        """All examples of all splits."""
        return chain(self.train, self.val, self.test)


def _check_split(split: str, examples: object) -> None:
    remedy = (
        'give a list of Example("1", {"question": "…"}); of rows, '
        "flowevolve.optimize(prompt=…, train=…, metric=…) makes one itself"
    )
    if not isinstance(examples, Sequence) or isinstance(examples, str):
        raise InputError(f"Dataset: {split} is a {type(examples).__name__}; {remedy}")
    for number, example in enumerate(examples):
        if not isinstance(example, Example):
            raise InputError(f"Dataset: {split}[{number}] is a {type(example).__name__}; {remedy}")


class ChatModel(Protocol):
    """The LLM that a task calls: one of the ``task`` role, whose calls are already scheduled and accounted for."""

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        """Return the text of the reply.

        Raises:
            flowevolve.core.model.LLMError: if the call failed for good, after all retries.
        """


class Task(Protocol):
    """What artifacts are evolved for. Implementations hold no state that changes between rollouts."""

    name: str
    data: Dataset

    def seed(self) -> Artifact:
        """The artifact that evolution starts from."""

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        """Run one example with one artifact and score it. Blocking work belongs in `flowevolve.clock.in_thread`."""


@runtime_checkable
class TellsTrust(Protocol):
    """A task that reports whether the programs that it scores could forge their own scores."""

    async def find_trust(self, before: ScoreTrust | None = None) -> ScoreTrust:
        """Whether scores can be trusted: as found ``before`` in the same run or, if that is None, as found out now.

        Called once, after the task was entered as a context manager, if it is one.
        """


@runtime_checkable
class OnMachines(Protocol):
    """A task whose rollouts run on machines that may come and go."""

    @property
    def slots(self) -> int:
        """How many rollouts the machines run at a time at present."""

    @property
    def measured_on(self) -> str:
        """The class of the machines that time and memory are measured on, where the task measures them."""

    def watch_machines(self, tell: Callable[[str], None]) -> None:
        """Have ``tell`` called with a line whenever a machine is awaited, then arrives, or is lost.

        This is called before the run begins.
        """

    def log_machines(self, log: Log) -> None:
        """Write to ``log`` which machines the cluster has now, and from then on which come and go."""


@runtime_checkable
class Measured(Protocol):
    """A task whose rollouts depend on more than LLM replies, so that they can't be recomputed from recorded replies.

    If ``measured`` is set, an interrupted run keeps its rollouts. ``worst`` is the score of a failed rollout; it is 0
    for other tasks, whose scores are in [0, 1].
    """

    measured: bool
    worst: float
