"""The stages from which algorithms are built, and helpers for writing others."""

import typing

from flowevolve._util.renamed import under_new_name as _under_new_name
from flowevolve.core.graph import committing as committing
from flowevolve.core.item import Released as Released
from flowevolve.stages.asking import ask as ask, tokens_by_agent as tokens_by_agent, try_asking as try_asking
from flowevolve.stages.assess import Assess as Assess, Level as Level
from flowevolve.stages.commit import Commit as Commit
from flowevolve.stages.evaluate import Evaluate as Evaluate
from flowevolve.stages.final_selection import FinalSelection as FinalSelection, FinalSettings as FinalSettings
from flowevolve.stages.generate import Generate as Generate
from flowevolve.stages.group_commit import GroupCommit as GroupCommit, Head as Head, Way as Way
from flowevolve.stages.merging import try_merging as try_merging
from flowevolve.stages.paired_screen import Noise as Noise, PairedScreen as PairedScreen
from flowevolve.stages.payloads import (
    Assessed as Assessed,
    Evaluated as Evaluated,
    Proposed as Proposed,
    Remeasured as Remeasured,
    Rolled as Rolled,
    Selected as Selected,
    Written as Written,
)
from flowevolve.stages.program_writing import as_shown as as_shown, write_program as write_program
from flowevolve.stages.propose import Propose as Propose, reflect as reflect
from flowevolve.stages.rebase import Rebase as Rebase
from flowevolve.stages.remeasure import Remeasure as Remeasure, Remeasuring as Remeasuring
from flowevolve.stages.repair import Repair as Repair
from flowevolve.stages.rollouts import Rollouts as Rollouts
from flowevolve.stages.scan import scan as scan
from flowevolve.stages.screen import Screen as Screen
from flowevolve.stages.writing import Writing as Writing, WritingSettings as WritingSettings

_OLD_NAMES = {"Update": "Commit"}
"""Each old name that still works, and the present one."""

if typing.TYPE_CHECKING:
    Update = Commit
else:

    def __getattr__(name: str) -> object:
        return _under_new_name(__name__, name, _OLD_NAMES)


if __name__ != "flowevolve.stages":
    raise ImportError("import this package as flowevolve.stages")
