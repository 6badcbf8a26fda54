"""Figures show what the tables say, with letters as text, and the same run gives the same files."""

from __future__ import annotations

import re
import shutil
import sqlite3
import xml.etree.ElementTree as ET
from contextlib import closing
from io import BytesIO
from itertools import accumulate
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from flowevolve._util.errors import InputError
from flowevolve.core.budget import Cost
from flowevolve.core.event_kinds import ItemDone, RunStarted
from flowevolve.core.events import EventLog
from flowevolve.core.item_ids import ItemId
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.page.figures import catalog
from flowevolve.page.figures.catalog import FIGURES, draw, write_figures
from flowevolve.page.figures.empty import EmptyFigureError
from flowevolve.page.figures.style import role_colours
from flowevolve.page.tables.candidates import CandidateRow, CurveRow, JudgementRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.work import CallRow
from flowevolve.runner.result import Result

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: Path) -> list[str]:
    """The texts of a picture, which are text in it."""
    return ["".join(text.itertext()) for text in ET.parse(svg).iter(f"{SVG}text")]


def test_every_figure_is_written_in_three_formats(
    directory: Path, result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "FIGURES", {"score": FIGURES["score"]})
    written = write_figures([directory], tmp_path / "figures")
    assert [file.name for file in written.files] == ["score.svg", "score.pdf", "score.png"]
    assert written.empty == {}
    first = {file: file.read_bytes() for file in written.files}
    with mpl.rc_context({"svg.hashsalt": None, "font.size": 30, "svg.fonttype": "path"}):  # a user's own settings
        again = write_figures([directory], tmp_path / "figures")
    assert {file: file.read_bytes() for file in again.files} == first
    assert {"validation, 95 % interval", "held-out test", "time (min)", "best score (90 examples)"} <= {
        *texts(tmp_path / "figures" / "score.svg")
    }
    assert b"/FontFile2" in first[tmp_path / "figures" / "score.pdf"]  # TrueType, so letters are text


def test_the_score_is_the_curve_over_time_and_over_tokens(directory: Path, tables: Tables) -> None:
    rows = sorted((row for row in tables.of(CurveRow) if row.series == "validation"), key=lambda row: row.seconds)
    for name, across in (("score", [row.seconds / 60 for row in rows]), ("score_tokens", [row.tokens for row in rows])):
        (axes,) = draw(directory, name).axes
        (line,) = [line for line in axes.lines if line.get_label() == "validation, 95 % interval"]
        measured, scores = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
        assert scores.tolist() == [row.score for row in rows]
        assert [value / measured[-1] for value in measured] == pytest.approx([value / across[-1] for value in across])
    assert re.fullmatch(r"prompt and completion \((thousand |million )?tokens\)", axes.get_xlabel())


def test_runs_are_compared_in_one_picture(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "FIGURES", {"score": FIGURES["score"]})
    monkeypatch.setattr(catalog, "ENDINGS", (".svg",))
    shutil.copytree(directory, tmp_path / "$a$ <b>")
    write_figures([directory, tmp_path / "$a$ <b>"], tmp_path)
    assert {"ended", "$a$ <b>", "ended, held-out test", "$a$ <b>, held-out test"} <= {*texts(tmp_path / "score.svg")}


def colour_of(bars: PolyCollection) -> str:
    red, green, blue, _ = np.asarray(bars.get_facecolor(), float)[0]
    return to_hex((red, green, blue))


def test_the_timeline_has_a_bar_for_each_request(directory: Path, tables: Tables) -> None:
    lanes, in_flight, tokens = draw(directory, "timeline").axes
    bars = {colour_of(each): len(each.get_paths()) for each in lanes.collections if isinstance(each, PolyCollection)}
    calls = [call for call in tables.of(CallRow) if call.stage != "held_out" and call.outcome != "failed"]
    colours = role_colours({call.role for call in calls})
    for role, colour in colours.items():
        assert bars[colour] == sum(call.role == role for call in calls)
    edges = sorted(edge for call in calls if call.stage == "evaluate" for edge in ((call.begun, 1), (call.ended, -1)))
    most = max(accumulate(step for _, step in edges))
    assert f"evaluate ({most})" in [label.get_text() for label in lanes.get_yticklabels()]
    assert (in_flight.get_ylabel(), tokens.get_ylabel()) == ("requests\nin flight", "completion\ntokens/s")
    assert tokens.get_xlabel() == "time (min)"


def test_the_lineage_has_all_candidates(directory: Path, tables: Tables) -> None:
    axes, strip = draw(directory, "lineage").axes
    scored = [row for row in tables.of(CandidateRow) if row.score is not None]
    shown = [float(np.asarray(line.get_ydata(), float)[0]) for line in axes.lines]
    assert sorted(shown) == sorted(row.score or 0.0 for row in scored)
    assert strip.get_yticklabels()[0].get_text().startswith(f"{len(list(tables.of(CandidateRow))) - len(scored)} ")


def test_the_heat_map_has_the_best_candidate_on_top(directory: Path, tables: Tables, result: Result) -> None:
    axes = draw(directory, "heat_map").axes[0]
    (image,) = axes.images
    cells = image.get_array()
    assert cells is not None
    assert result.best is not None
    assert cells.shape[1] == 90
    assert cells[0].mean() == pytest.approx(result.best.score)
    assert axes.get_yticklabels()[0].get_text() == result.best.id


def test_staleness_has_every_judged_item(directory: Path, tables: Tables) -> None:
    (axes,) = draw(directory, "staleness").axes
    assert sum(bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)) == len(
        list(tables.of(JudgementRow))
    )


def test_a_notebook_shows_a_figure_and_it_can_be_saved_into_a_buffer(directory: Path, result: Result) -> None:
    figure = draw(directory, "staleness")
    png, size = figure._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert size == {"width": 340, "height": 210}
    buffer = BytesIO()
    figure.savefig(buffer, format="svg")
    assert b"<text" in buffer.getvalue()
    assert b"<dc:date>" not in buffer.getvalue()


def test_what_can_not_be_drawn_is_said(tmp_path: Path) -> None:
    """Of a run that was killed before it had made a request."""
    directory = RunDirectory(tmp_path / "run", {"budget": {"seconds": 1}, "llm": {"backend": "sim"}})
    log = EventLog(lambda: 0.0)
    log.subscribe(directory.event)
    log.emit(RunStarted("gepa", ("propose",), "house_style"))
    log.emit(ItemDone(ItemId("0"), "propose", "discarded", "", 0.0, Cost()))
    directory.close()
    written = write_figures([tmp_path / "run"], tmp_path)
    assert written.files == []
    assert set(written.empty) == set(FIGURES)
    with pytest.raises(EmptyFigureError, match=r"^figure score: nothing was scored$"):
        draw(tmp_path / "run", "score")
    with pytest.raises(InputError, match=r"there is no figure 'line'; did you mean 'lineage'"):
        draw(tmp_path / "run", "line")


def test_a_run_that_was_killed_can_be_drawn(directory: Path, result: Result, tmp_path: Path) -> None:
    run = tmp_path / "killed"
    shutil.copytree(directory, run)
    for name in ("result.json", "journal.end"):
        (run / name).unlink()
    with closing(sqlite3.connect(run / JOURNAL)) as database:
        (last,) = database.execute("SELECT max(seq) * 2 / 3 FROM events").fetchone()
        database.execute("DELETE FROM events WHERE seq > ?", (last,))
        database.execute("DELETE FROM calls WHERE seq > ?", (last,))
        database.commit()
    for name in FIGURES:
        assert draw(run, name).axes


def test_roles_have_colours_of_their_own() -> None:
    colours = role_colours(["zeta", "reflection", "code", "task"])
    assert list(colours) == ["task", "reflection", "code", "zeta"]
    assert len(set(colours.values())) == 4
