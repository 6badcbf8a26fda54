"""What kind of address a host is."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host is this machine's own loopback, which can be reached only from here and by no proxy."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_on_loopback(url: str) -> bool:
    """Whether a URL is on this machine's own loopback. What is no URL is not."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
