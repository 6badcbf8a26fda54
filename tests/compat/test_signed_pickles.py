"""Users' own objects come back to their owner alone."""

from __future__ import annotations

import json
import os
import stat
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from flowevolve._util.errors import StorageError
from flowevolve.compat.signed_pickles import KEY_VARIABLE, keep_signed, key_file
from flowevolve.core.payload_kinds import NotKeptError
from flowevolve.journal.payloads import dump, load


class Own:
    """An object of a user's: no dataclass."""

    def __init__(self, value: object) -> None:
        self.value = value


class Sub(Own):
    pass


keep_signed(Own, "tests.Own")


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "deep" / "journal.key"
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


def test_objects_come_back_and_the_same_one_is_kept_once(key: Path) -> None:
    one, other = Sub({"text": "x" * 1000}), Own(2)
    data = dump((one, [other, one]), ())
    loaded: Any = load(data, {})
    first, (second, again) = loaded
    assert (type(first), first.value, second.value) == (Sub, one.value, 2)
    assert again is first
    assert len(data) < 3000


def test_the_key_is_its_owners_alone_and_stays(key: Path) -> None:
    data = dump(Own(1), ())
    made = key.read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [path.name for path in key.parent.iterdir()] == [key.name]
    dump(Own(2), ())
    assert key.read_bytes() == made
    assert isinstance(load(data, {}), Own)


def test_the_key_is_in_the_owners_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert key_file() == tmp_path / "flowevolve" / "journal.key"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert key_file() == tmp_path / ".config" / "flowevolve" / "journal.key"


@pytest.mark.parametrize("field", ["pickled", "signature"])
def test_what_was_changed_is_not_loaded(key: Path, field: str) -> None:
    (kind, held) = json.loads(dump(Own(1), ()))
    raw = b64decode(held[field][1])
    held[field][1] = b64encode(bytes([raw[0] ^ 1]) + raw[1:]).decode()
    with pytest.raises(NotKeptError, match="not signed with the key"):
        load(json.dumps([kind, held]).encode(), {})


def test_another_owners_objects_are_not_loaded(key: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = dump(Own(1), ())
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "other.key"))
    with pytest.raises(NotKeptError, match="copy the key file there"):
        load(data, {})
    assert not (tmp_path / "other.key").exists()
    dump(Own(1), ())
    with pytest.raises(NotKeptError, match="not signed with the key"):
        load(data, {})


def test_a_key_that_others_may_read_is_refused(key: Path) -> None:
    data = dump(Own(1), ())
    key.chmod(0o640)
    with pytest.raises(StorageError, match=f"chmod 600 {key}"):
        load(data, {})
    with pytest.raises(NotKeptError, match="must be yours alone"):
        dump(Own(1), ())


def test_what_is_no_key_is_refused(key: Path) -> None:
    data = dump(Own(1), ())
    key.write_bytes(b"short")
    with pytest.raises(StorageError, match="is not a key"):
        load(data, {})


def test_without_a_place_for_a_key_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "file" / "journal.key"))
    with pytest.raises(NotKeptError, match=os.strerror(20)):
        dump(Own(1), ())


def test_what_can_not_be_pickled_is_not_kept(key: Path) -> None:
    with pytest.raises(NotKeptError, match="can't be pickled"):
        dump(Own(lambda: None), ())
