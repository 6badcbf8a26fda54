"""Warnings name a line of whoever called the library."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from flowevolve._util.user_warnings import warn_user


def test_a_warning_names_the_line_that_called() -> None:
    with pytest.warns(UserWarning, match="beware") as caught:
        warn_user("beware")
    assert caught[0].filename == __file__


def test_of_a_command_it_names_what_called_the_command_line_and_not_what_reads_its_arguments() -> None:
    app = typer.Typer()
    app.command()(warn_user)
    with pytest.warns(UserWarning, match="beware") as caught:
        CliRunner().invoke(app, ["beware"], catch_exceptions=False)
    assert caught[0].filename == __file__
