"""Runs a seccomp filter as the kernel would, so that the filter of a machine can be tested on any other."""

from __future__ import annotations

import struct
from collections.abc import Sequence

ALLOWED, KILLED = 0x7FFF0000, 0x80000000


def refused(number: int) -> int:
    """The answer by which a call fails with this error number."""
    return 0x00050000 | number


def answer(program: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> int:
    """What the filter says of a system call; ``architecture`` as in linux/audit.h."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *(value & (2**64 - 1) for value in padded))
    loaded, at = 0, 0
    while True:
        operation, when, otherwise, operand = struct.unpack_from("=HBBI", program, 8 * at)
        at += 1
        match operation:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", data, operand)
            case 0x15:
                at += when if loaded == operand else otherwise
            case 0x25:
                at += when if loaded > operand else otherwise
            case 0x35:
                at += when if loaded >= operand else otherwise
            case 0x45:
                at += when if loaded & operand else otherwise
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(f"an instruction that no filter of ours has: {operation:#x}")
