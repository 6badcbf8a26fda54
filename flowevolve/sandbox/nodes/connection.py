"""The connection between a run and a node that joins it on its own, as jobs of a batch system do.

The node connects to the run over TCP and does what the run asks of it. Files in a shared folder would need no open
port, but with them nobody notices when a side has died, a cancellation can't be waited for, and new files appear
seconds late. A connection ends with either side: the run then leases its jobs elsewhere, and a node whose run was
killed kills its programs.

Both sides know a secret, and neither tells anything to a side that does not prove that it knows it. Nothing is
encrypted.
"""

from __future__ import annotations

import hmac
import json
import secrets
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import anyio
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, IncompleteRead
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.nodes.cluster import NodeLostError
from flowevolve.sandbox.nodes.host import CLOSE_SECONDS, NodeHost

MEET_SECONDS = 30.0
"""The time limit for both sides to prove that they know the secret."""
QUIET_SECONDS = 600.0
"""After this time without a message, a node considers its run gone; runs ask for a sign of life every few seconds."""
_MOST_BEFORE = 500
"""The most bytes of a message from a side that has not proved anything yet."""
_ENDS = (EndOfStream, IncompleteRead, BrokenResourceError, ClosedResourceError)

Question = Literal["begin", "run", "cancel"]
_QUESTIONS: tuple[Question, ...] = ("begin", "run", "cancel")


class _Messages:
    """Whole messages over a stream of bytes. Each has a number, which its answer repeats, and a question."""

    _HEAD = struct.Struct("!QBQ")

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._received = BufferedByteReceiveStream(stream)
        self._sending = anyio.Lock()

    async def send(self, message: bytes, number: int = 0, question: int = 0) -> None:
        async with self._sending:
            await self.stream.send(self._HEAD.pack(number, question, len(message)) + message)

    async def receive(self, most: int | None = None) -> tuple[int, int, bytes]:
        """Raises: BrokenResourceError if a message is longer than ``most`` bytes."""
        number, question, length = self._HEAD.unpack(await self._received.receive_exactly(self._HEAD.size))
        if most is not None and length > most:
            raise BrokenResourceError
        return number, question, await self._received.receive_exactly(length) if length else b""


def _proof(secret: str, side: str, *said: str) -> str:
    return hmac.digest(secret.encode(), json.dumps([side, *said]).encode(), "sha256").hex()


@dataclass(eq=False, slots=True)
class _Waiting:
    ended: anyio.Event = field(default_factory=anyio.Event)
    answer: bytes | None = None


class JoinedNode:
    """The node, on the run's side of the connection."""

    def __init__(self, name: str, messages: _Messages) -> None:
        self.name = name
        self.slots = 0
        self.machine = ""
        self.gone = anyio.Event()
        self._messages = messages
        self._waiting: dict[int, _Waiting] = {}
        self._number = 0
        self._scope = anyio.CancelScope(shield=True)  # programs can be cancelled while the run itself is

    async def listen(self) -> None:
        """Receive answers until the connection ends or the node is killed."""
        with self._scope:
            try:
                while True:
                    number, _, answer = await self._messages.receive()
                    if number in self._waiting:
                        self._waiting[number].answer = answer
                        self._waiting[number].ended.set()
            except _ENDS:
                pass
            finally:
                self.gone.set()
                for waiting in self._waiting.values():
                    waiting.ended.set()

    async def _ask(self, question: Question, message: bytes = b"") -> bytes:
        """Raises: NodeLostError if the connection ends before the answer."""
        self._number += 1
        number, waiting = self._number, _Waiting()
        self._waiting[number] = waiting
        try:
            if not self.gone.is_set():
                await self._messages.send(message, number, _QUESTIONS.index(question))
                await waiting.ended.wait()
        except _ENDS:
            pass
        finally:
            del self._waiting[number]
        if waiting.answer is None:
            raise NodeLostError("its connection has ended")
        return waiting.answer

    async def begin(self, settings: SandboxSettings, slots: int) -> bytes:
        """Have the node begin, and return what `NodeHost.begin` returns there."""
        self.slots = slots
        return await self._ask("begin", json.dumps([settings.model_dump_json(), slots]).encode())

    async def run(self, message: bytes) -> bytes:
        return await self._ask("run", message)

    async def cancel(self, message: bytes) -> None:
        await self._ask("cancel", message)

    async def end(self) -> None:
        """Tell the node that nothing more will come, and wait until it has ended what it runs."""
        with suppress(*_ENDS, RuntimeError), anyio.move_on_after(CLOSE_SECONDS):  # uvloop's, if it is closed
            await self._messages.stream.send_eof()
            await self.gone.wait()
        self.kill()

    def kill(self) -> None:
        self._scope.cancel()


async def receive_node(
    stream: ByteStream, secret: str, joined: Callable[[JoinedNode], None], meeting: anyio.CapacityLimiter
) -> None:
    """On the run's side: pass the node at the other end to ``joined``, if it knows the secret, and listen to it.

    ``meeting`` bounds the number of connections that have not proved anything yet, so that strangers can't use up all
    files that this process may open. Further ones are turned away.
    """
    messages = _Messages(stream)
    async with stream:
        node = None
        with suppress(anyio.WouldBlock), anyio.move_on_after(MEET_SECONDS):
            meeting.acquire_nowait()
            try:
                node = await _meet_node(messages, secret)
            except (*_ENDS, ValueError, KeyError, TypeError):  # whoever that is does not speak this protocol
                return
            finally:
                meeting.release()
        if node is not None:
            joined(node)
            await node.listen()


async def _meet_node(messages: _Messages, secret: str) -> JoinedNode | None:
    _, _, said = await messages.receive(_MOST_BEFORE)
    hello = json.loads(said)
    name, theirs, ours = str(hello["name"]), str(hello["nonce"]), secrets.token_hex()
    proof = _proof(secret, "run", theirs, ours)
    await messages.send(json.dumps({"nonce": ours, "proof": proof}).encode())
    _, _, proved = await messages.receive(_MOST_BEFORE)
    expected = _proof(secret, "node", name, theirs, ours)
    return JoinedNode(name, messages) if hmac.compare_digest(proved, expected.encode()) else None


async def join(host: str, port: int, secret: str, name: str) -> None:
    """On the node's side: do what the run asks until the connection ends.

    Raises:
        NodeLostError: if there is no run that knows the secret.
    """
    try:
        stream = await anyio.connect_tcp(host, port)
    except OSError as error:
        raise NodeLostError(f"there is no run at {host}:{port} ({error}); has it ended?") from error
    messages = _Messages(stream)
    async with stream:
        try:
            with anyio.fail_after(MEET_SECONDS):
                await _meet_run(messages, secret, name)
        except (*_ENDS, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise NodeLostError(f"what listens at {host}:{port} is not the run that this node is for") from error
        begun = await _received(messages)
        if begun is not None:
            await _serve(messages, *begun)


async def _meet_run(messages: _Messages, secret: str, name: str) -> None:
    ours = secrets.token_hex()
    await messages.send(json.dumps({"name": name, "nonce": ours}).encode())
    said = json.loads((await messages.receive(_MOST_BEFORE))[2])
    theirs = str(said["nonce"])
    if not hmac.compare_digest(str(said["proof"]), _proof(secret, "run", ours, theirs)):
        raise ValueError
    await messages.send(_proof(secret, "node", name, ours, theirs).encode())


async def _received(messages: _Messages) -> tuple[int, int, bytes] | None:
    """The next message; None if the run is gone."""
    try:
        with anyio.fail_after(QUIET_SECONDS):
            return await messages.receive()
    except (*_ENDS, TimeoutError):
        return None


async def _serve(messages: _Messages, number: int, _: int, settings: bytes) -> None:
    """Serve a run whose first message contained its settings."""
    host = NodeHost(*json.loads(settings))

    async def answer(number: int, question: Question, message: bytes) -> None:
        said = b""
        if question == "run":
            said = await host.run(message)
        else:
            await host.cancel(message)
        with suppress(*_ENDS):
            await messages.send(said, number)

    try:
        with suppress(*_ENDS):
            await messages.send((await host.begin()).encode(), number)
        async with anyio.create_task_group() as tasks:
            while (received := await _received(messages)) is not None:
                number, question, message = received
                tasks.start_soon(answer, number, _QUESTIONS[question], message)
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await host.end()
