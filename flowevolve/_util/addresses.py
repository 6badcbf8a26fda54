"""What kind of address a host is."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a host is this machine's own loopback, which can be reached only from here and by no proxy."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
