"""Any text comes back as it was; one that recurs is stored once."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from hypothesis import given, strategies as st

from flowevolve.journal.texts import REMEMBERED, Texts, pack, unpack

TEXTS = st.text(st.characters(exclude_categories=())) | st.text("ab\n\0é\ud800\udfff", min_size=900, max_size=1200)


@given(TEXTS)
def test_any_text_survives_a_column(text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        (stored,) = database.execute("SELECT ?", (pack(text),)).fetchone()
    assert unpack(stored) == text


def test_short_texts_are_readable_and_long_ones_small() -> None:
    assert pack("héllo") == "héllo"
    assert len(pack("line\n" * 1000)) < 100


def test_a_text_has_one_number_however_long_ago_it_was_met() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE texts (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data NOT NULL)")
        texts = Texts(database)
        first = texts.number("first \ud800")
        others = {texts.number(str(number)) for number in range(REMEMBERED + 10)}
        assert texts.number("first \ud800") == first == Texts(database).number("first \ud800")
        assert len(others) == REMEMBERED + 10
        assert first not in others
        assert database.execute("SELECT count(*) FROM texts").fetchone() == (REMEMBERED + 11,)
