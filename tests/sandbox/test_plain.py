"""Plain data as bytes: what goes over comes out the same, and what is no such message makes nothing but an error."""

from __future__ import annotations

import json
import math
import pickle
import struct
import tempfile
from collections import OrderedDict
from decimal import Decimal
from http import HTTPStatus

import numpy as np
import pytest

from flowevolve.sandbox.inside import plain

MARK = 0x666C6F7765766F6C


def refused(value: object) -> object:
    raise plain.NotPlainError(f"a {type(value).__name__}")


def sent(message: bytes) -> object:
    """What is read of these bytes."""
    with tempfile.TemporaryFile() as file:
        file.write(message)
        file.seek(0)
        return plain.receive(file.fileno(), refused)


def around(value: object) -> object:
    return sent(plain.packed(value, refused))


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, -7, 2**5000, 1.5, math.inf, "text", "\ud800", b"\x00\xff", 1 + 2j),
        *((), (1, (2, [3])), [1, [2.5, "x"], None], {1, 2}, frozenset({"a"})),
        {"a": 1, 2: (3,), None: {"b": [b"c"]}, (1, 2): "d"},
        HTTPStatus.OK,
    ],
)
def test_plain_data_comes_out_the_same(value: object) -> None:
    came = around(value)
    assert came == value
    assert type(came) is type(value)


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "complex128", ">i4", "U5", "S3", "datetime64[ns]"])
def test_arrays_come_out_the_same(dtype: str) -> None:
    array = np.zeros((2, 3), dtype)
    came = around([array, array.T])
    assert isinstance(came, list)
    assert [each.shape for each in came] == [(2, 3), (3, 2)]
    assert came[0].dtype == array.dtype
    came[0][0, 0] = came[0][1, 1]  # they can be written to


@pytest.mark.parametrize("order", "<>")
def test_texts_in_arrays_come_out_the_same(order: str) -> None:
    array = np.array(["", "a\U0010ffff", "\ud800"], f"{order}U2")
    came = around(array)
    assert isinstance(came, np.ndarray)
    assert came.tolist() == array.tolist()
    assert around(np.str_("")) == ""


def test_numbers_of_numpy_stay_what_they_are() -> None:
    came = around((np.float32(0.5), np.int64(3), np.bool_(True)))
    assert came == (0.5, 3, True)
    assert [type(each) for each in came] == [np.float32, np.int64, np.bool_]


def test_subclasses_become_what_they_are_of() -> None:
    class Three(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    came = around([Three(3), OrderedDict(a=1)])
    assert came == [3, {"a": 1}]
    assert [type(each) for each in came] == [int, dict]


@pytest.mark.parametrize("value", [object(), Decimal(1), np.array([object()]), np.zeros(2, "i4,f8"), lambda: 1])
def test_other_objects_do_not_go_over(value: object) -> None:
    with pytest.raises(plain.NotPlainError):
        plain.packed(value, refused)


def test_data_that_is_too_deep_or_holds_itself_does_not_go_over() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(plain.NotPlainError, match="deep"):
        plain.packed(endless, refused)


def message(said: object, blob: bytes = b"", size: int | None = None) -> bytes:
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return struct.pack("!QII", MARK, len(text), len(blob) if size is None else size) + text + blob


@pytest.mark.parametrize(
    "wrong",
    [
        pickle.dumps({"score": 999}) * 2,
        struct.pack("!QII", 1, 1, 0) + b"1",
        struct.pack("!QII", MARK, 2**32 - 1, 0),
        struct.pack("!QII", MARK, 1, 2**32 - 1),
        message(b"{"),
        message(b"[" * 100_000),
        message(b"1" * 100_000),
        message(b"\xff\xff"),
        message({"unknown": 1}),
        message({}),
        message({"tuple": 1, "dict": 2}),
        message({"dict": [[1]]}),
        message({"dict": [[[1], 2]]}),
        message({"bytes": 9}),
        message({"bytes": -1}),
        message({"array": ["O", [1], 8]}, bytes(8)),
        message({"array": ["i4,i4", [1], 8]}, bytes(8)),
        message({"array": ["<f8", [2], 8]}, bytes(8)),
        message({"array": ["<f8", [-1, -1], 8]}, bytes(8)),
        message({"array": ["<f8", ["x"], 8]}, bytes(8)),
        message({"array": ["<U0", [10**13], 0]}),
        message([{"array": ["<U0", [2**19], 0]}] * 3),
        message({"array": ["<U1", [1], 4]}, b"\xff\xff\xff\xff"),
        message({"array": [">U2", [1], 8]}, b"\x00\x00\x00A\x00\x11\x00\x00"),
        message({"scalar": ["=U1", [], 4]}, b"\xff\xff\xff\xff"),
        message({"member": ["os", "environ", "PATH"]}),
        message({"member": ["http", "HTTPStatus", "__init__"]}),
        message({"member": ["http", "HTTPStatus", "NONE"]}),
        message({"complex": ["1", 2]}),
        message({"object": 3}),
    ],
)
def test_bytes_that_are_no_message_are_an_error(wrong: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        sent(wrong)


@pytest.mark.parametrize("short", [b"", b"\x00", message([1])[:-1], message({"bytes": 3}, b"ab", 3)])
def test_messages_that_break_off_are_an_end(short: bytes) -> None:
    with pytest.raises(EOFError):
        sent(short)
