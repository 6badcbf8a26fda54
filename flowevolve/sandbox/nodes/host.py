"""What runs on a node of any cluster, and the check whether it can run programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from flowevolve._util.clock import in_thread
from flowevolve._util.cores import processor_name
from flowevolve._util.errors import FlowevolveError
from flowevolve._util.versions import version_refused
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.cluster import NodeRefusedError
from flowevolve.sandbox.nodes.folders import fingerprint
from flowevolve.sandbox.nodes.messages import for_node
from flowevolve.sandbox.nodes.work import NodeWork

OPEN_SECONDS = 120.0
"""The time limit for a node to report whether programs can be run there."""
CLOSE_SECONDS = 10.0


class NodeHost:
    """Runs programs in the sandboxes of its machine. It takes and returns only bytes, texts and numbers."""

    def __init__(self, settings: str, slots: int) -> None:
        self._settings = for_node(settings, slots)
        self._evaluators = LocalEvaluators(self._settings)
        self._work = NodeWork(self._evaluators)

    async def begin(self) -> str:
        """Begin, and return as JSON: the reason why programs can't be run, if there is one, the version, the processor,
        and a fingerprint of folders.
        """
        refused, found = None, None
        try:
            await self._evaluators.__aenter__()
            found = await in_thread(fingerprint, self._settings.readable)
        except (FlowevolveError, OSError) as error:
            refused = str(error)
        about = {"version": version("flowevolve"), "machine": processor_name(), "folders": found}
        return json.dumps({"refused": refused, **about})

    async def run(self, message: bytes) -> bytes:
        return await self._work.run(message)

    async def cancel(self, message: bytes) -> None:
        await self._work.cancel(message)

    async def end(self) -> None:
        await self._evaluators.__aexit__(None, None, None)


def checked_machine(said: str | bytes, called: str, readable: Iterable[Path], folders: str) -> str:
    """The class of a node whose `NodeHost.begin` returned ``said``; ``folders`` is the fingerprint of ``readable``
    here.

    Raises:
        NodeRefusedError: if programs can't be run there; the message begins with ``called``, the node's name.
    """
    about = json.loads(said)
    refused = version_refused(about["version"]) or about["refused"]
    if refused is None and about["folders"] != folders:
        names = ", ".join(map(str, readable))
        refused = f"what programs may read ({names}) is not the same there as here; copy it there, or share it"
    if refused is not None:
        raise NodeRefusedError(f"{called}: {refused}")
    machine: str = about["machine"]
    return machine
