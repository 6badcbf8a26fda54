import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact

components = st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=4)


@given(components)
def test_id_does_not_depend_on_the_order_of_components(texts: dict[str, str]) -> None:
    backwards = dict(reversed(list(texts.items())))
    assert Artifact(texts).id == Artifact(backwards).id
    assert Artifact(texts) == Artifact(backwards)


@given(components, st.text())
def test_another_text_is_another_artifact(texts: dict[str, str], other: str) -> None:
    artifact = Artifact(texts)
    name = next(iter(texts))
    changed = artifact.replace(**{name: other})
    assert (changed == artifact) == (other == texts[name])
    assert artifact[name] == texts[name]


def test_kind_is_part_of_the_identity() -> None:
    assert Artifact({"a": "x"}, "prompt").id != Artifact({"a": "x"}, "program").id


def test_is_immutable() -> None:
    artifact = Artifact({"a": "x"})
    with pytest.raises(AttributeError, match="replace"):
        artifact.kind = "program"
    with pytest.raises(TypeError):
        artifact.components["a"] = "y"  # type: ignore[index]  # the point of the test
    assert artifact["a"] == "x"


def test_bad_components_are_refused() -> None:
    with pytest.raises(InputError, match="at least one component"):
        Artifact({})
    with pytest.raises(InputError, match="must be strings"):
        Artifact({"a": 1})  # type: ignore[dict-item]  # the point of the test
    with pytest.raises(InputError, match="it has \\['a'\\]"):
        Artifact({"a": "x"}).replace(b="y")


def test_a_component_may_have_any_name() -> None:
    assert Artifact({"self": "a"}).replace(self="b")["self"] == "b"
