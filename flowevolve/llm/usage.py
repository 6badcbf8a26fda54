"""What a call's tokens come to: as its server counted them, and as an estimate where it did not."""

from __future__ import annotations

from flowevolve.llm.types import JSON, Usage


def counted(usage: JSON) -> Usage:
    """What an answer's ``usage`` says, each number by itself; 0 stands for what it leaves out.

    Where only the sum of both is there, the other number is what is left of it.
    """
    if not isinstance(usage, dict):
        return Usage()
    prompt, completion, total = (_count(usage.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    if completion:
        prompt = prompt or max(0, total - completion)
    elif prompt:
        completion = max(0, total - prompt)
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(prompt, completion, min(cached, prompt))


def _count(value: JSON) -> int:
    """A number of tokens, which some servers write as ``12.0``; 0 for whatever is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return 0
    return max(0, int(value))
