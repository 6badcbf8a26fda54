"""Access to a gepa data loader by the engine's example ids, which are text."""

from __future__ import annotations

from collections.abc import Sequence

from gepa.core.data_loader import ComparableHashable, DataLoader

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.task import Example

AnyId = ComparableHashable
"""The type of a loader's ids of its examples."""


class Examples:
    """The examples of one split. ``where`` names the argument they came in, for messages."""

    def __init__(self, loader: DataLoader[AnyId, object], where: str) -> None:
        self.loader = loader
        self._where = where
        self._ids: dict[str, AnyId] = {}

    def names(self, ids: Sequence[AnyId]) -> list[str]:
        """The engine's ids of these examples.

        Raises:
            InputError: if two different ids are the same as text.
        """
        return [self._name(data_id) for data_id in ids]

    def _name(self, data_id: AnyId) -> str:
        name = str(data_id)
        known = self._ids.setdefault(name, data_id)
        if known != data_id:
            raise InputError(
                f"{self._where}: the ids {known!r} and {data_id!r} read the same; give ids that differ as text"
            )
        return name

    def data_id(self, name: str) -> AnyId:
        """The loader's own id."""
        return self._ids[name]

    def fetch(self, names: Sequence[str]) -> list[object]:
        """The examples themselves. This takes as long as the loader does."""
        return list(self.loader.fetch([self._ids[name] for name in names]))

    def all(self) -> tuple[Example, ...]:
        """All present examples in the engine's form, without their data, which stays with the loader.

        Raises:
            InputError: if there are none.
        """
        names = self.names(self.loader.all_ids())
        if not names:
            raise InputError(f"{self._where} has no examples; give at least one")
        nothing: dict[str, JSON] = {}
        return tuple(Example(name, nothing) for name in names)


class IdsOnly:
    """A loader for code that only chooses among examples: it has another loader's ids, and fetches just these ids."""

    def __init__(self, loader: DataLoader[AnyId, object]) -> None:
        self._loader = loader

    def all_ids(self) -> Sequence[AnyId]:
        return self._loader.all_ids()

    def fetch(self, ids: Sequence[AnyId]) -> list[object]:
        return list(ids)

    def __len__(self) -> int:
        return len(self._loader)
