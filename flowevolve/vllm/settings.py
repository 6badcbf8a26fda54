"""How a vLLM of our own is started and kept: the ``[vllm]`` section of a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from flowevolve.llm.keys import key_among

_OURS = {"--host": "vllm.host", "--port": "vllm.port", "--model": "vllm.model", "--served-model-name": "llm.model"}
"""Flags that the supervisor sets itself, and the setting for each."""
_KEYS = {"--api-key": "VLLM_API_KEY", "--hf-token": "HF_TOKEN"}
"""Flags that hold a key, and the variable for each."""
_ELSEWHERE = (
    "a key does not belong in a configuration, which is kept with every run; set {} where flowevolve is started"
)


class VLLMSettings(BaseModel):
    """One or several ``vllm serve`` of the same model."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    executable: str = "vllm"
    """A command, the path of one, or the folder of the environment that vLLM is installed in."""
    model: str | None = None
    """What to load, where that is not the name that requests give: a folder, or a name at Hugging Face."""
    flags: tuple[str, ...] = ()
    """Of ``vllm serve``, as on its command line. They go before the flags that suit evolution."""
    defaults: bool = True
    """Whether to add the flags that suit evolution."""
    device: Literal["auto", "gpu", "cpu"] = "auto"
    """``auto``: a GPU where there is one."""
    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    """Of the first replica, each other has the next; 0: any free ones."""
    replicas: int = Field(default=1, gt=0)
    devices: tuple[str, ...] = ()
    """``CUDA_VISIBLE_DEVICES`` of each replica."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables beside those of this process."""
    startup_seconds: float = Field(default=600.0, gt=0)
    """From the start until it must be healthy."""
    restarts: int = Field(default=3, ge=0)
    """How often one that died or hung is started again."""
    hung_seconds: float = Field(default=30.0, gt=0)
    """When a request got no answer: one that is not healthy, nor so much later, is ended and started again."""
    stop_seconds: float = Field(default=20.0, gt=0)
    """From being asked to end until it is killed."""

    @property
    def by_priority(self) -> bool:
        """Whether the server schedules by the priorities that requests carry."""
        given = flag_value(self.flags, "--scheduling-policy")
        return self.defaults if given is None else given == "priority"

    @model_validator(mode="after")
    def _checks(self) -> VLLMSettings:
        for flag, setting in _OURS.items():
            if has_flag(self.flags, flag):
                raise ValueError(f"flag {flag} is set by us: use {setting}")
        for flag, variable in _KEYS.items():
            if has_flag(self.flags, flag):
                raise ValueError(f"flag {flag}: {_ELSEWHERE.format(variable)}")
        key = key_among(self.environment)
        if key is not None:
            raise ValueError(f"environment: {key}: {_ELSEWHERE.format('it')}")
        if self.devices and len(self.devices) != self.replicas:
            raise ValueError(f"devices has {len(self.devices)} entries for {self.replicas} replicas; give one for each")
        if self.port + self.replicas - 1 > 65535:
            raise ValueError(f"port {self.port} leaves no room for {self.replicas} replicas; choose a lower one")
        return self


def has_flag(flags: Sequence[str], flag: str) -> bool:
    """Whether ``flag``, or what switches it off, is among these in any of the ways that vLLM reads it."""
    name = _name(flag)
    return any(_name(part) == name for part in flags if part.startswith("--"))


def flag_value(flags: Sequence[str], flag: str) -> str | None:
    """The value of a flag, the last one where it is given twice; None if it is not there."""
    value = None
    for part, following in zip_longest(flags, flags[1:], fillvalue=""):
        if part.startswith("--") and _name(part) == _name(flag):
            value = part.partition("=")[2] if "=" in part else following
    return value


def _name(flag: str) -> str:
    return flag.partition("=")[0].replace("_", "-").removeprefix("--").removeprefix("no-")
