"""Writes a calibration as a file from which the profile can be read, and as lines for a person."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import isinf

from flowevolve.sim.calibration.calibrate import Calibration
from flowevolve.sim.profiles import BatchingProfile, Profile


def as_toml(calibration: Calibration, heading: str) -> str:
    """The profile as TOML, with comments on how it was checked and what it assumes."""
    comments = [heading, f"{_checked(calibration)}.", *(f"Taken for granted: {each}." for each in calibration.assumed)]
    return "".join(f"# {comment}\n" for comment in comments) + _toml(calibration.profile)


def as_lines(calibration: Calibration) -> list[tuple[str, str]]:
    """What was found, as names and values."""
    profile, measured = calibration.profile, calibration.measured
    thinking = profile.output
    lines = []
    if isinstance(profile, BatchingProfile):
        steps = ", ".join(f"{1000 * profile.seconds_of_step(load):.3g} ms with {load}" for load in measured.requests())
        prompts = f"{1000 * profile.prefill_seconds_per_token:.3g} ms for each token that is not cached"
        lines += [
            ("one more token for each answer", steps),
            ("contexts", f"{1e6 * profile.context_seconds_per_token:.3g} µs more for each token in them"),
            ("prompts", prompts),
            ("at a time", f"{profile.max_num_seqs} requests"),
            ("prefix cache", f"{profile.cache_blocks * 16:,} tokens" if profile.cache_blocks else "none"),
        ]
    else:
        requests = _number_of("requests", profile.requests_per_minute)
        tokens = _number_of("tokens", profile.tokens_per_minute)
        lines += [
            ("first token", f"after {profile.first_token_seconds:.3g} s in the median"),
            ("each further token", f"{1000 * profile.per_token_seconds:.3g} ms, whatever the load"),
            ("limits", f"{requests} and {tokens} a minute"),
        ]
    if measured.refused_at is not None:
        lines.append(("refused", f"some of {measured.refused_at} requests at a time"))
    thought = f"{thinking.median:g} tokens beside the text, in the median" if thinking.median else "none seen"
    lines += [("thinking", thought), ("checked", _checked(calibration))]
    lines += [("taken for granted", each) for each in calibration.assumed]
    usage = calibration.usage
    paid = f"{calibration.requests:,} requests, {usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out"
    return [*lines, ("paid", paid)]


def _number_of(things: str, most: float) -> str:
    return f"any number of {things}" if isinf(most) else f"{most:,.0f} {things}"


def _checked(calibration: Calibration) -> str:
    check = calibration.check
    if check is None:
        return "not compared with further requests, as the server refused some of them"
    return (
        f"{check.requests} further requests, {check.at_once} at a time, took {check.seconds:.1f} s; "
        f"by the profile they take {check.predicted:.1f} s ({check.error:+.0%})"
    )


def _toml(profile: Profile) -> str:
    """The fields of a profile as keys, and those of its output as a table."""
    lines = [
        f"{field.name} = {_value(getattr(profile, field.name))}" for field in fields(profile) if field.name != "output"
    ]
    output = [f"{name} = {_value(value)}" for name, value in asdict(profile.output).items()]
    return "\n".join([*lines, "", "[output]", *output]) + "\n"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
