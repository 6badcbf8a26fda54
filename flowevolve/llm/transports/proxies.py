"""The proxy for an address, as the environment names it (``HTTPS_PROXY`` and the like)."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from flowevolve._util.addresses import is_loopback
from flowevolve._util.secrets import hide


def proxy_for(url: str) -> str | None:
    """The proxy for a URL; None if there is none, or the URL is on this machine. `redacted` will hide its password."""
    address, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if proxy is None or is_loopback(address.hostname or "") or proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    password = proxy.rpartition("@")[0].rpartition("://")[2].partition(":")[2]
    hide(password)
    hide(unquote(password))
    return proxy
