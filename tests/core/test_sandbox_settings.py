"""The ``[sandbox]`` table: what goes to Slurm as it is stands in the run directory, so it holds no key."""

from __future__ import annotations

import pytest

from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config, with_overrides


def table(**slurm: object) -> dict[str, object]:
    return {"sandbox": {"on": "slurm", "slurm": slurm}, "budget": {"minutes": 1}}


@pytest.mark.parametrize(
    ("slurm", "name"),
    [
        ({"slurm_setup": ["module load gcc", "export HF_TOKEN=hf_0123456789"]}, "HF_TOKEN"),
        ({"slurm_setup": "DB_PASSWORD='of mine' ./begin"}, "DB_PASSWORD"),
        ({"slurm_additional_parameters": {"export": "ALL,WANDB_API_KEY=0123456789"}}, "WANDB_API_KEY"),
        ({"slurm_additional_parameters": {"auth_token": "0123456789"}}, "auth_token"),
    ],
)
def test_a_key_is_refused_as_it_would_be_kept_with_the_run(slurm: dict[str, object], name: str) -> None:
    with pytest.raises(InputError, match=rf"sandbox.slurm: '{name}' .*kept with the run.*on the nodes"):
        parse_config(table(**slurm), "config.toml")


def test_where_a_key_is_read_on_the_node_may_be_said() -> None:
    given: dict[str, object] = {
        "slurm_setup": ["export HF_TOKEN=$(cat ~/.token)", 'export API_KEY="$KEY"', "source ~/.keys"],
        "slurm_wckey": "a project",
    }
    assert parse_config(table(**given), "config.toml").sandbox.slurm.settings == given


def test_what_another_cluster_does_not_have_is_taken_out_by_null() -> None:
    before = parse_config(table(slurm_account="mine", mem_gb=32), "config.toml")
    after = with_overrides(before, ["sandbox.slurm.slurm_account=null", "sandbox.slurm.slurm_partition=cpu"])
    assert after.sandbox.slurm.settings == {"mem_gb": 32, "slurm_partition": "cpu"}
