"""From a configuration to the algorithm and the policies of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

import flowevolve as fe
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.runner.plan import ProvidedObjects, make_plan
from tests.support.own_algorithm import Climb


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


class Tuned(Climb):
    """Says that it can do all that a user may want."""

    name = "tuned"
    speculates = True
    races = True

    def graph(self) -> fe.Graph:
        made = super().graph()
        propose = self.tuning.workers_of({"propose": fe.Workers(2)}).stage("propose", self.propose, "evaluate")
        assert propose.workers == 3
        return replace(made, stages=tuple(propose if stage.name == "propose" else stage for stage in made.stages))


SECTIONS = {
    "stages": {"propose": {"workers": 3}},
    "racing": {"policy": "bound"},
    "speculation": {"alpha": {"evaluate": 0.5}},
}


def made(kind: type[Climb], **sections: object) -> fe.Algorithm:
    table = {"algorithm": {"name": f"{__name__}:{kind.__name__}"}, "budget": {"proposals": 1}, **sections}
    return make_plan(parse_config(table, "test"), ProvidedObjects()).algorithm


@pytest.mark.parametrize(
    ("section", "says"),
    [
        (
            "stages",
            r"stages\.propose: algorithm climb asks for no workers of its stages; leave \[stages\] out",
        ),
        ("racing", r"racing\.policy: algorithm climb has no evaluation that can be stopped; set it to \"off\""),
        ("speculation", r"speculation\.alpha: algorithm climb has no stage that can speculate"),
    ],
)
def test_a_section_that_an_algorithm_has_no_use_for_is_refused(section: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        made(Climb, **{section: SECTIONS[section]})


def test_sections_that_an_algorithm_can_use_are_its_own_to_judge() -> None:
    assert made(Tuned, **SECTIONS).name == "tuned"


class KeptInVain(Climb):
    def state(self) -> dict[str, int]:
        return {}


class GivenBackInVain(Climb):
    def restore(self, state: object) -> None:
        """Nothing ever comes."""


class Stateful(KeptInVain, GivenBackInVain):
    """Has both."""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (KeptInVain, r"^algorithm\.name: algorithm 'climb' has state\(\) but no restore\(\); it needs both"),
        (GivenBackInVain, r"^algorithm\.name: algorithm 'climb' has restore\(\) but no state\(\); it needs both"),
    ],
)
def test_a_state_that_is_kept_has_to_be_given_back(kind: type[Climb], said: str) -> None:
    with pytest.raises(InputError, match=said):
        made(kind)
    assert made(Stateful).name == "climb"


def test_sections_that_say_nothing_are_no_matter() -> None:
    assert made(Climb, racing={"policy": "off"}, speculation={"window": 3}, stages={}).name == "climb"


def test_bounds_of_workers_that_leave_no_number_are_told_by_their_names() -> None:
    said = r"^stages\.propose\.min_workers is 5, but has to be at most max_workers, 3$"
    with pytest.raises(InputError, match=said):
        made(Tuned, stages={"propose": {"min_workers": 5, "max_workers": 3}})
