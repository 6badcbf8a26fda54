"""An evaluator and the program that it scores, each in a sandbox of its own, with pipes between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flowevolve._util.json_types import JSON
from flowevolve.sandbox.evaluators import Job, Served
from flowevolve.sandbox.outcome import Outcome
from flowevolve.sandbox.pool import Sandbox

_SERVE = """\
def serve(**given):
    from flowevolve.sandbox.inside import served
    served.serve(**given)
"""
_ENTRY = "_program.py"


@dataclass(frozen=True, slots=True)
class SandboxPair:
    """A sandbox for evaluators, in which their files can be read, and one for programs, in which these can't."""

    evaluators: Sandbox
    programs: Sandbox

    async def run(
        self, source: str, *, call: str, arguments: Mapping[str, JSON], program: Mapping[str, JSON], name: str
    ) -> Outcome:
        """Run an evaluator and its program until the evaluator has ended, and return the evaluator's outcome.

        ``source``, ``call``, ``arguments`` and ``name`` are the evaluator's, as in `Sandbox.run`; ``program`` has the
        arguments of `flowevolve.sandbox.inside.served.serve`. Both have the same limits. If the program exceeds one
        before the evaluator has ended, the evaluator is ended, too, and the outcome is the program's. Cancelling kills
        both.
        """
        asking = self.evaluators.request(source, call=call, arguments=arguments, name=name)
        asked = self.programs.request(_SERVE, call="serve", arguments=program, name=_ENTRY)
        served = Served(self.programs.settings, asked)
        (outcome,) = await self.evaluators.run_job(Job(self.evaluators.settings, asking, served=served))
        return outcome
