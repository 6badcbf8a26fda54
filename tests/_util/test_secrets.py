"""Keys come from the environment or a file, and are in no text that this process makes afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from structlog.testing import capture_logs

from flowevolve._util import secrets as keys
from flowevolve._util.errors import InputError
from flowevolve._util.secrets import HIDDEN, hide, key_for, read_key, redacted
from flowevolve.core.model import LLMError
from flowevolve.llm.transports.failures import status_error
from flowevolve.llm.transports.wire import chat_reply

KEY = 'sk-Sent"inel/0123456789'


@pytest.fixture(autouse=True)
def forget_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_known", [])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o600)
    return path


def test_a_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    assert read_key("SOME_KEY", None) is None
    monkeypatch.setenv("SOME_KEY", f" {KEY}\n")
    assert read_key("SOME_KEY", None) == KEY


def test_a_file_counts_before_the_environment(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setenv("SOME_KEY", "another key, even one that is none")
    with capture_logs() as logs:
        assert read_key("SOME_KEY", file) == KEY
    assert logs == []


@pytest.mark.parametrize(
    ("url", "sent", "warned"),
    [
        ("https://api.openai.com/v1", True, False),
        ("https://eu.api.openai.com/v1", True, False),
        ("http://api.openai.com/v1", False, False),
        ("http://localhost:8000/v1", False, False),
        ("https://api.example.com/v1", False, True),
        ("https://fakeapi.openai.com/v1", False, True),
        ("https://api.openai.com.example.com/v1", False, True),
    ],
)
def test_a_key_that_nobody_named_goes_to_openai_alone(
    monkeypatch: pytest.MonkeyPatch, url: str, *, sent: bool, warned: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with capture_logs() as logs:
        assert key_for(url, None, None) == (KEY if sent else None)
        assert key_for(url, "OPENAI_API_KEY", None) == KEY
    assert [log["event"] for log in logs] == ["key.not_sent"] * warned
    assert KEY not in str(logs)


def test_a_key_that_was_named_goes_to_any_server(file: Path) -> None:
    assert key_for("http://localhost:8000/v1", None, file) == KEY


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_may_read_is_warned_of(file: Path, mode: int) -> None:
    file.chmod(mode)
    with capture_logs() as logs:
        assert read_key("SOME_KEY", file) == KEY
    assert [(log["log_level"], log["event"], log["mend"]) for log in logs] == [
        ("warning", "key.readable_by_others", f"chmod 600 {file}")
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "it is empty"), (b" \n", "it is empty"), (b"one\ntwo", "one line"), (b"\xff\xfe", "it is not text")],
)
def test_a_file_without_a_key_is_refused_and_not_shown(file: Path, content: bytes, says: str) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        read_key("SOME_KEY", file)
    assert str(file) in str(caught.value)
    assert "two" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: the API key can't be read: No such file.*api_key_file"):
        read_key("SOME_KEY", tmp_path / "none")


def test_a_variable_that_holds_no_key_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "two words")
    with pytest.raises(InputError, match=r"SOME_KEY holds no API key") as caught:
        read_key("SOME_KEY", None)
    assert "words" not in str(caught.value)


def test_every_form_of_a_key_is_hidden() -> None:
    hide(KEY)
    hide(KEY[:12])
    for form in (KEY, json.dumps(KEY)[1:-1], quote(KEY), quote(KEY, safe="")):
        assert redacted(f"Bearer {form}; {form}") == f"Bearer {HIDDEN}; {HIDDEN}"


def test_a_placeholder_is_no_secret() -> None:
    hide("none")
    assert redacted("none of these") == "none of these"


def test_errors_hide_keys_also_where_their_text_is_cut() -> None:
    hide(KEY)
    message = json.dumps({"error": {"message": f"{'x' * 490} {KEY}"}}).encode()
    body = json.dumps({"error": {"message": f"{'x' * 470} {KEY}"}}).encode()
    plain = f"{'x' * 490} {KEY}".encode()
    errors = [LLMError(f"no connection: {KEY}"), status_error(400, "", {}, message), status_error(500, "", {}, plain)]
    for content in (plain, body):
        with pytest.raises(LLMError) as caught:
            chat_reply(content, "m")
        errors.append(caught.value)
    for error in errors:
        assert HIDDEN in str(error)
        assert not any(KEY[:length] in str(error) for length in range(4, len(KEY)))
