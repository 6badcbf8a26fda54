"""The commands for the page: ``watch``, and ``report`` of several runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve.page.figures import catalog
from tests.support.command import flowevolve

CONFIG = 'clock = "virtual"\n[budget]\nproposals = 2\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "run.toml").write_text(CONFIG, "utf-8")
    done = flowevolve("run", "run.toml", "--out", "runs/one", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "its page: runs/one/report.html\n" in done.stdout
    return folder


def test_every_run_leaves_its_page(made: Path) -> None:
    assert (made / "runs/one/report.html").read_text("utf-8").startswith("<!doctype html>")


def test_report_writes_the_page_anew_and_where_it_is_told(made: Path) -> None:
    (made / "runs/one/report.html").unlink()
    done = flowevolve("report", "runs/one", cwd=made)
    assert done.stdout.endswith("its page: runs/one/report.html\n")
    done = flowevolve("report", "runs/one", "--compare", "runs/one", "--out", "both.html", cwd=made)
    assert done.stdout.endswith("its page: both.html\n")
    assert (made / "both.html").read_text("utf-8").count('class="data"') == 2


def test_report_writes_figures_and_says_which_there_are(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "FIGURES", {name: catalog.FIGURES[name] for name in ("score", "staleness")})
    monkeypatch.setattr(catalog, "ENDINGS", (".svg",))
    done = flowevolve("report", "runs/one", "--figures", "figures", cwd=made)
    assert done.stdout.splitlines()[-3:] == [
        "its page: runs/one/report.html",
        "its figures, as SVG, PDF and PNG: score in figures",
        "the figure staleness was not written, because no item was judged: none was stale, or every one went on unasked",
    ]
    assert [file.name for file in (made / "figures").iterdir()] == ["score.svg"]


def test_report_as_json_writes_no_page(made: Path) -> None:
    (made / "runs/one/report.html").unlink(missing_ok=True)
    assert flowevolve("report", "runs/one", "--json", cwd=made).returncode == 0
    assert not (made / "runs/one/report.html").exists()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere", "nowhere: no such folder"),
        ("empty", "empty holds no run, and neither do the folders in it"),
        ("http://127.0.0.1:9/?token=secret", "http://127.0.0.1:9/ can't be reached"),
    ],
)
def test_watch_of_nothing_is_one_line(made: Path, place: str, said: str) -> None:
    (made / "empty").mkdir(exist_ok=True)
    done = flowevolve("watch", place, cwd=made)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {said}")
    assert "secret" not in done.stderr
    assert done.stderr.count("\n") == 1
