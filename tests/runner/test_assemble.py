"""From a configuration to the algorithm and the policies of a run."""

from __future__ import annotations

import pytest

from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.runner.plan import ProvidedObjects, make_plan


@pytest.mark.parametrize("name", ["levi", "code_evolve", "one_plus_lambda", "best_of_n"])
def test_repair_is_refused_where_nothing_repairs(name: str) -> None:
    table = {
        "algorithm": {"name": name},
        "task": {"name": "program", "problem": "circle_packing_26"},
        "staleness": {"policy": "reflective"},
        "budget": {"proposals": 1},
    }
    with pytest.raises(InputError, match=rf"staleness\.policy: algorithm '{name}' has no stage that repairs"):
        make_plan(parse_config(table, "test"), ProvidedObjects())
