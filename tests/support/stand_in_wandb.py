"""What gepa's tracker uses of the package wandb; everything that is told ends in ``told``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

told: dict[str, list[Any]] = {}
run: Any = None


def login() -> None:
    pass


class Config:
    """A run's settings."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def update(self, given: dict[str, Any], allow_val_change: bool) -> None:
        assert allow_val_change
        self.values.update(given)


class Run:
    def __init__(self) -> None:
        self.summary: dict[str, Any] = {}


config = Config()


def init(**settings: Any) -> None:
    global run
    run = Run()
    told["settings"] = [settings]


def log(values: dict[str, Any], step: int | None = None, commit: bool = True) -> None:
    for name, value in values.items():
        told.setdefault(name, []).append(value)


class Table:
    def __init__(self, columns: list[str], data: list[list[Any]]) -> None:
        self.columns = columns
        self.data = data


@dataclass(frozen=True)
class Html:
    text: str


def finish() -> None:
    global run
    told["summary"] = [run.summary]
    told["config"] = [dict(config.values)]
    run = None
