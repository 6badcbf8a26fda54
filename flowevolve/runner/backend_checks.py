"""Checks of backends before anything is opened: that they are available, and that their keys are set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from flowevolve._util.errors import InputError
from flowevolve._util.open_files import allow_open_files
from flowevolve._util.secrets import KEY_PLACE, missing_key
from flowevolve.config.backends import BACKENDS, REAL_BACKENDS, SHIPPED_BACKENDS
from flowevolve.config.llm import LLMSettings
from flowevolve.config.roles import ResolvedRole
from flowevolve.config.run import Config
from flowevolve.runner.llm import endpoints

LITELLM_MISSING = "llm.backend: 'litellm' needs the package litellm: pip install 'flowevolve[litellm]'"

OPENAI_PREFIX = "openai/"
"""The prefix that LiteLLM, gepa and DSPy put before the names of OpenAI's models."""

OTHER_FILES = 100
"""Files and pipes that a run needs in addition to its connections, for its journal, the interpreter and the sandbox."""


def check_backend(config: Config, roles: Mapping[str, ResolvedRole]) -> None:
    """Raises:
    InputError: if the backend is not available or does not suit the configuration. Nothing is opened to find out.
    """
    llm = config.llm
    if llm.backend in SHIPPED_BACKENDS:
        if llm.settings:
            raise InputError(
                f"llm.settings: backend {llm.backend!r} has no settings of its own; put what you set there into [llm]"
            )
        if llm.backend == "litellm" and find_spec("litellm") is None:
            raise InputError(LITELLM_MISSING)
        if llm.backend == "litellm" and len(llm.urls) > 1:
            raise InputError("llm.base_urls: backend 'litellm' takes only one address; give it in base_url")
        if llm.backend == "litellm" and any(KEY_PLACE in url for url in llm.urls):
            raise InputError(
                f"llm.base_url: backend 'litellm' can't put a key in the place of {KEY_PLACE}; use backend 'openai'"
            )
        return
    factory = BACKENDS.find(llm.backend, "llm.backend")
    BACKENDS.check(llm.backend, factory, llm.settings, "llm.settings")
    if any(model.llm.urls for role in roles.values() for model in role.models):
        raise InputError(f"llm.base_url: backend {llm.backend!r} is a plug-in; its settings belong in [llm.settings]")
    if config.clock == "virtual" and not getattr(factory, "in_process", False):
        raise InputError(
            f"clock 'virtual' needs a backend inside this process, and {llm.backend!r} does not say that it is one "
            "(in_process = True); set clock to 'real'"
        )


def check_open_files(config: Config, roles: Iterable[ResolvedRole]) -> None:
    """Allow this process as many open files as the requests in flight need.

    Raises:
        InputError: if the system allows fewer.
    """
    if not any(model.llm.backend in REAL_BACKENDS for role in roles for model in role.models):
        return
    wanted = config.llm.concurrency + OTHER_FILES
    allowed = allow_open_files(wanted)
    if allowed < wanted:
        raise InputError(
            f"llm.concurrency: {config.llm.concurrency} requests in flight need about {wanted} open files, but this "
            f"process may open {allowed}. Raise that limit ('ulimit -n'), or set llm.concurrency to at most "
            f"{max(allowed - OTHER_FILES, 1)}"
        )


def check_names(roles: Iterable[ResolvedRole]) -> None:
    """Raises: InputError if a model is meant to be OpenAI's own, but has a name that none of theirs can have."""
    for model in (model for role in roles for model in role.models):
        if model.llm.backend != "openai" or model.llm.urls or "/" not in model.name:
            continue
        own = model.name.removeprefix(OPENAI_PREFIX)
        if own != model.name:
            mend = f"OpenAI's own servers know it as {own!r}: give that"
        else:
            mend = (
                "for another provider set backend to 'litellm', or give its base_url; 'vllm' serves models of "
                "Hugging Face"
            )
        raise InputError(
            f"{model.named_by}: {model.name!r} is not the name of a model of OpenAI, and no base_url is given; {mend}"
        )


def check_keys(roles: Iterable[ResolvedRole]) -> None:
    """Raises: InputError if the environment variable for the key of a model's server is not set."""
    for model in (model for role in roles for model in role.models):
        _check_key(model.llm)


def _check_key(llm: LLMSettings) -> None:
    if llm.backend not in REAL_BACKENDS:
        return
    urls = endpoints(llm) if llm.backend == "openai" else llm.urls
    for url in urls or ("",):
        variable = missing_key(url, llm.key_variable, llm.api_key_file)
        if variable is not None:
            raise InputError(
                f"llm.api_key_env: the environment variable {variable}, which is to hold the key"
                f"{f' for {url}' if url else ''}, is not set; set it, or name another one there or a file in "
                "llm.api_key_file"
            )
