"""The ``[vllm]`` table of a configuration: how our own vLLM server is started and supervised."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from flowevolve._util.secrets import key_among

_OURS = {"--host": "vllm.host", "--port": "vllm.port", "--model": "vllm.model", "--served-model-name": "llm.model"}
"""Flags that we set ourselves, and the setting to use instead of each."""
_KEYS = {"--api-key": "VLLM_API_KEY", "--hf-token": "HF_TOKEN"}
"""Flags that hold a key, and the environment variable to use instead of each."""
_ELSEWHERE = (
    "a key does not belong in a configuration, which is kept with every run; set {} where flowevolve is started"
)

_PARALLEL = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
"""The product of these flags' values is the number of GPUs that a server uses."""
LOOPBACK = "127.0.0.1"


class VLLMSettings(BaseModel):
    """One or several ``vllm serve`` processes of the same model."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    on: Literal["here", "ray"] = "here"
    """Where they run: on this machine, or on nodes of a Ray cluster."""
    address: str = "auto"
    """With ``ray``: the cluster's address, as HOST:PORT, or ``auto`` for the cluster that this machine belongs to."""
    gpus: int | None = Field(default=None, ge=0)
    """With ``ray``: how many GPUs of its node a replica takes. None: as many as its flags make it use."""
    executable: str = "vllm"
    """A command on the PATH, the path of a command, or the folder of the environment that vLLM is installed in."""
    model: str | None = None
    """The model to load, if it differs from the name in requests: a folder, or a name at Hugging Face."""
    flags: tuple[str, ...] = ()
    """Flags of ``vllm serve``, as on its command line. They override the flags that suit evolution."""
    defaults: bool = True
    """Whether to add the flags that suit evolution."""
    device: Literal["auto", "gpu", "cpu"] = "auto"
    """``auto``: the GPU if there is one, else the CPU."""
    host: str = LOOPBACK
    port: int = Field(default=0, ge=0, le=65535)
    """The port of the first replica; the others have the ports after it. 0: any free ports."""
    replicas: int = Field(default=1, gt=0)
    devices: tuple[str, ...] = ()
    """The value of ``CUDA_VISIBLE_DEVICES`` for each replica."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment variables in addition to those of this process."""
    startup_seconds: float = Field(default=600.0, gt=0)
    """The time limit from the start of a server until it is healthy."""
    restarts: int = Field(default=3, ge=0)
    """How many times a server that died or hangs is restarted."""
    hung_seconds: float = Field(default=30.0, gt=0)
    """A server that is unhealthy after an unanswered request, and still so after this time, is restarted."""
    stop_seconds: float = Field(default=20.0, gt=0)
    """The time from asking a server to stop until it is killed."""

    @property
    def by_priority(self) -> bool:
        """Whether the server schedules by the priorities that requests carry."""
        given = flag_value(self.flags, "--scheduling-policy")
        return self.defaults if given is None else given == "priority"

    @property
    def gpus_each(self) -> int:
        """How many GPUs of its node a replica takes, on a Ray cluster."""
        if self.gpus is not None or self.device == "cpu":
            return self.gpus or 0
        sizes = [flag_value(self.flags, flag) for flag in _PARALLEL]
        return prod(int(size) for size in sizes if size is not None and size.isdecimal())

    @model_validator(mode="after")
    def _checks(self) -> VLLMSettings:
        for flag, setting in _OURS.items():
            if has_flag(self.flags, flag):
                raise ValueError(f"flag {flag} is set by flowevolve; use {setting} instead")
        for flag, variable in _KEYS.items():
            if has_flag(self.flags, flag):
                raise ValueError(f"flag {flag}: {_ELSEWHERE.format(variable)}")
        key = key_among(self.environment)
        if key is not None:
            raise ValueError(f"environment: {key}: {_ELSEWHERE.format('it')}")
        if self.devices and len(self.devices) != self.replicas:
            entries = "one entry" if len(self.devices) == 1 else f"{len(self.devices)} entries"
            raise ValueError(f"devices has {entries}, but replicas is {self.replicas}; give one entry for each")
        if self.on == "here" and self.gpus is not None:
            raise ValueError(
                "gpus is only for on = 'ray'; on this machine, set devices, which names the GPUs of each replica"
            )
        if self.on == "ray" and self.devices:
            raise ValueError("devices: with on = 'ray', Ray says which GPUs a replica has; leave it out, or set gpus")
        if self.on == "ray" and self.host != LOOPBACK:
            raise ValueError(
                "host: with on = 'ray', a replica listens at its node's address in the cluster; leave it out"
            )
        if self.port + self.replicas - 1 > 65535:
            raise ValueError(f"port {self.port} leaves no room for {self.replicas} replicas; choose a lower one")
        return self


def has_flag(flags: Sequence[str], flag: str) -> bool:
    """Whether ``flag`` or its ``--no-`` form is among ``flags``, in any spelling that vLLM accepts."""
    return any(_name(part) == _name(flag) for part in flags if part.startswith("--"))


def flag_value(flags: Sequence[str], flag: str) -> str | None:
    """The value of a flag, the last one if it is given twice; None if it is not given."""
    value = None
    for part, following in zip_longest(flags, flags[1:], fillvalue=""):
        if part.startswith("--") and _name(part) == _name(flag):
            value = part.partition("=")[2] if "=" in part else following
    return value


def _name(flag: str) -> str:
    return flag.partition("=")[0].replace("_", "-").removeprefix("--").removeprefix("no-")
