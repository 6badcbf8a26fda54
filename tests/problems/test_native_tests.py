"""Scripts that run machine code on tests, and what is read of their output."""

from __future__ import annotations

import base64

from flowevolve.problems.native_tests import answers, of_the_script, script


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_answers_stand_in_lines_of_their_own() -> None:
    assert answers(f"..\n{encoded('4')}\n{encoded('')}") == ["4", ""]
    assert answers("\n") == [""]


def test_what_can_not_be_read_ends_the_answers() -> None:
    assert answers("") == []
    assert answers(f"\n{encoded('4')}\nno base64!\n{encoded('5')}") == ["4"]


def test_the_fork_that_becomes_the_shell_does_not_count() -> None:
    assert of_the_script([(0.0, 17.0), (0.1, 17.2), (0.2, 0.3), (0.3, 9.0)]) == [(0.2, 0.3), (0.3, 9.0)]
    assert of_the_script([(0.0, 1.0)]) == [(0.0, 1.0)]
    assert of_the_script([]) == []


def test_progress_is_told_if_asked_for() -> None:
    code = encoded("machine code")
    assert "printf ." in script(code, ["1"], tell=True)
    assert "printf ." not in script(code, ["1"], tell=False)
