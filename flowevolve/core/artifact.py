"""Artifacts: the texts that evolve.

An artifact never changes. A new text is a new artifact with a new id, so an id names the same text in every
process, run and journal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from flowevolve._util.errors import InputError

ArtifactKind = Literal["prompt", "playbook", "harness", "program"]


class Artifact(Mapping[str, str]):
    """An immutable mapping from component name to text.

    Two artifacts of one kind with the same components are equal and have the same ``id``, whatever order the
    components were given in.

    Raises:
        InputError: if there is no component, or a name or text is not a string.
    """

    __slots__ = ("_components", "id", "kind")

    id: str
    kind: ArtifactKind

    def __init__(self, components: Mapping[str, str], kind: ArtifactKind = "prompt") -> None:
        if not isinstance(components, Mapping):
            raise InputError(
                f"an artifact is made of texts by name, not of a {type(components).__name__}: "
                'Artifact({"prompt": "…"})'
            )
        if not components:
            raise InputError("an artifact needs at least one component: give a mapping of name to text")
        for name, text in components.items():
            if not all(isinstance(part, str) for part in (name, text)):
                raise InputError(
                    f"artifact component {name!r}: names and texts must be strings, but the name is a "
                    f"{type(name).__name__} and the text a {type(text).__name__}"
                )
        object.__setattr__(self, "_components", dict(components))
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "id", _content_hash(components, kind))

    _components: dict[str, str]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("artifacts are immutable: make a new one with replace()")

    def __getitem__(self, name: str) -> str:
        return self._components[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._components)

    def __len__(self) -> int:
        return len(self._components)

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Artifact) and other.id == self.id

    def __reduce__(self) -> tuple[type[Artifact], tuple[dict[str, str], ArtifactKind]]:
        return Artifact, (self._components, self.kind)

    def __repr__(self) -> str:
        return f"Artifact({self.id}, {self.kind}, {list(self)})"

    @property
    def components(self) -> Mapping[str, str]:
        """The components, read-only."""
        return MappingProxyType(self._components)

    def replace(self, /, **components: str) -> Artifact:
        """This artifact with some components' texts replaced.

        Raises:
            InputError: if a name is not a component of this artifact.
        """
        unknown = components.keys() - self._components.keys()
        if unknown:
            raise InputError(f"this artifact has no components {sorted(unknown)}; it has {list(self)}")
        return Artifact({**self._components, **components}, self.kind)


def _content_hash(components: Mapping[str, str], kind: str) -> str:
    canonical = json.dumps([kind, sorted(components.items())], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]
