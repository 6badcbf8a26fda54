"""OpenEvolve's ``config.yaml``: the settings that have a meaning here, and those that are left over.

Source: openevolve 0.4.0, whose names and defaults these are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from flowevolve._util.errors import InputError
from flowevolve._util.registry import describe_validation
from flowevolve.programs.evaluator import read_text

_IDLE = {
    "log_level",
    "log_dir",
    "checkpoint_interval",
    "evaluator.max_retries",
    "evaluator.enable_artifacts",
    "database.log_prompts",
    "database.db_path",
    "database.in_memory",
    "llm.api_key",
}
"""Settings that don't affect what is found, as every step is journaled here; `load_folder` reports ``api_key``."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


class PromptPart(_Part):
    system_message: str = ""
    max_artifact_bytes: int = Field(default=20 * 1024, gt=0)


class EvaluatorPart(_Part):
    timeout: float = Field(default=300, gt=0)
    """The seconds that each stage may take."""
    memory_limit_mb: int | None = Field(default=None, gt=0)
    parallel_evaluations: int | None = Field(default=None, gt=0)
    cascade_evaluation: bool = True
    cascade_thresholds: tuple[float, ...] = (0.5, 0.75, 0.9)
    evaluator_args: dict[str, JsonValue] = Field(default_factory=dict)


class ModelPart(_Part):
    name: str
    weight: float = Field(default=1.0, ge=0)


class LLMPart(_Part):
    api_base: str | None = None
    models: tuple[ModelPart, ...] = ()
    primary_model: str | None = None
    primary_model_weight: float | None = None
    secondary_model: str | None = None
    secondary_model_weight: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    reasoning_effort: str | None = None

    def weighted(self) -> dict[str, float]:
        """Models by name and their weights, the heaviest first."""
        found = {model.name: model.weight for model in self.models}
        if self.primary_model is not None:
            found[self.primary_model] = self.primary_model_weight or 1.0
        if self.secondary_model is not None:
            found[self.secondary_model] = 0.2 if self.secondary_model_weight is None else self.secondary_model_weight
        return {name: weight for name, weight in sorted(found.items(), key=lambda pair: -pair[1]) if weight > 0}


class DatabasePart(_Part):
    feature_dimensions: tuple[str, ...] = ("complexity", "diversity")


class FolderSettings(_Part):
    """One ``config.yaml``."""

    max_iterations: int | None = Field(default=None, gt=0)
    random_seed: int | None = None
    language: str | None = None
    file_suffix: str | None = None
    diff_based_evolution: bool = True
    early_stopping_patience: int | None = Field(default=None, gt=0)
    prompt: PromptPart = PromptPart()
    evaluator: EvaluatorPart = EvaluatorPart()
    llm: LLMPart = LLMPart()
    database: DatabasePart = DatabasePart()

    def left_over(self) -> list[str]:
        """The keys that have no counterpart here, in order, except for those that don't affect what is found."""
        return [key for key in _extra(self) if key not in _IDLE]


def read_settings(folder: Path) -> tuple[FolderSettings, Path | None]:
    """The settings of a folder and the file they are from: ``config.yaml``, or else the first other ``config*.yaml``.

    Raises:
        InputError: naming the file, the key and what is wrong.
    """
    found = [folder / "config.yaml", *sorted(folder.glob("config*.yaml")), *sorted(folder.glob("config*.yml"))]
    file = next((path for path in found if path.is_file()), None)
    if file is None:
        return FolderSettings(), None
    table = _yaml(file)
    if not isinstance(table, dict | None):
        raise InputError(
            f"{file}: this file has to hold keys and values, but its content is of type {type(table).__name__}"
        )
    try:
        return FolderSettings.model_validate(_without_nothing(table or {})), file
    except ValidationError as error:
        raise InputError(f"{file}: {describe_validation(error)}") from None


def _yaml(file: Path) -> object:
    try:
        import yaml  # noqa: PLC0415  an extra
    except ImportError:
        raise InputError(f"{file}: reading this file needs PyYAML; pip install 'flowevolve[openevolve]'") from None
    try:
        table: object = yaml.safe_load(read_text(file))
    except yaml.YAMLError as error:
        raise InputError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from None
    return table


def _without_nothing(value: object) -> object:
    """Remove keys without a value, which count as absent."""
    if isinstance(value, dict):
        return {str(key): _without_nothing(inner) for key, inner in value.items() if inner is not None}
    return [_without_nothing(inner) for inner in value] if isinstance(value, list) else value


def _extra(part: BaseModel, prefix: str = "") -> Iterator[str]:
    for name in part.model_extra or {}:
        yield f"{prefix}{name}"
    for name in type(part).model_fields:
        inner = getattr(part, name)
        if isinstance(inner, _Part):
            yield from _extra(inner, f"{prefix}{name}.")
