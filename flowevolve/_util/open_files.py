"""How many files, pipes and connections this process may have open."""

from __future__ import annotations

from contextlib import suppress


def allow_open_files(wanted: int) -> int:
    """Raise this process's limit on open files to ``wanted``, as far as permitted. Returns how many it may open."""
    try:
        import resource  # noqa: PLC0415 - Windows has none, and no such limit
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(wanted, soft)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    with suppress(ValueError, OSError):  # macOS has a system limit below the one that it reports
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
        soft = min(wanted, hard)
    return soft
