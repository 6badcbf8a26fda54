"""The address of a server's API, in OpenAI's form or in Azure's older one, with deployments in the path."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import quote, urlsplit

from flowevolve._util.secrets import KEY_PLACE
from flowevolve.core.model import RefusedError

CHAT, EMBEDDINGS, MODELS = "/chat/completions", "/embeddings", "/models"
"""Paths below the root."""


@dataclass(frozen=True)
class Address:
    """An API's base URL. With ``azure_api_version`` it is the endpoint of an Azure resource.

    There, each model is a deployment with a path of its own, and the key is sent in another header than elsewhere. If
    the base URL contains `KEY_PLACE`, the key takes its place and is sent in no header.
    """

    base_url: str
    azure_api_version: str | None = None
    api_key: str | None = field(default=None, repr=False)

    @cached_property
    def root(self) -> str:
        """The URL that all paths are appended to. It may contain the key, so messages must show `base_url` instead."""
        base = self.base_url.rstrip("/").replace(KEY_PLACE, quote(self.api_key or KEY_PLACE, safe=""))
        return base if self.azure_api_version is None else f"{base.removesuffix('/openai')}/openai"

    @cached_property
    def query(self) -> dict[str, str]:
        """The query parameters of every URL."""
        return {} if self.azure_api_version is None else {"api-version": self.azure_api_version}

    def path(self, path: str, model: str) -> str:
        """The path for requests to a model."""
        return path if self.azure_api_version is None else f"/deployments/{quote(model, safe='')}{path}"

    def url(self, path: str) -> str:
        """The whole URL of a path."""
        return f"{self.root}{path}{self._end}"

    @cached_property
    def _end(self) -> str:
        """The ``?`` of every URL and the query after it; empty without parameters."""
        query = "&".join(f"{name}={value}" for name, value in self.query.items())
        return f"?{query}" if query else ""

    @property
    def headers(self) -> dict[str, str]:
        """The header with the key; none without a key, or where the key is in the path."""
        if not self.api_key or KEY_PLACE in self.base_url:
            return {}
        bearer = {"Authorization": f"Bearer {self.api_key}"}
        return bearer if self.azure_api_version is None else {"api-key": self.api_key}

    def sent_on(self, origin: str) -> RefusedError:
        """The error for a request that the server redirects to another origin: that must not get the prompt and key."""
        address = urlsplit(self.base_url)
        here = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        return RefusedError(
            f"the server at {here} redirects requests to {origin}, where prompts and keys are not sent; if they should "
            "go there, set base_url to it"
        )
