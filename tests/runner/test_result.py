"""What a result shows of itself, and what is left of it in a file, a pickle and a run directory."""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import anyio
import pytest
from rich.console import Console

import flowevolve as fe
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.journal.run_directory import RunDirectory, claim
from flowevolve.runner.candidates import FoundCandidate, lineage
from flowevolve.runner.result_view import html
from flowevolve.telemetry.summary import summarize


def evolved(out: Path | None = None) -> fe.Result:
    budget = fe.Budget(proposals=40)
    if out is None:
        return fe.optimize(budget=budget, clock="virtual", progress=False)
    return fe.optimize(budget=budget, clock="virtual", progress=False, out=out)


@pytest.fixture(scope="module")
def result() -> fe.Result:
    return evolved()


def test_its_repr_is_a_line_with_what_matters(result: fe.Result) -> None:
    assert result.best is not None
    assert re.fullmatch(
        rf"<Result gepa on house_style \(simulated\): {result.seed_score:.4f} → {result.best.score:.4f} "
        r"\[0\.\d{4} to 0\.\d{4}\] \([^)]+ on \d+ fresh examples[^)]*\), \d+ proposals in \d+\.\d s, stopped by the limit on proposals>",
        repr(result),
    )


def test_a_notebook_shows_a_table_with_the_best_texts_folded(result: fe.Result) -> None:
    shown = result._repr_html_()
    assert result.best is not None
    assert shown.startswith("<table><tr><th>run</th><td>gepa (stream) on house_style, sim</td></tr>")
    assert "<details><summary>best system_prompt</summary><pre>" in shown
    assert f"({result.best.id})" in shown


def test_a_best_text_that_is_the_seeds_is_no_gain() -> None:
    """In ACE the playbook that is validated may still be the first one, and the simulated answers to it vary."""
    rows = [{"text": f"Ticket {number}", "label": "bug" if number % 3 else "praise"} for number in range(50)]
    scores = iter([0.0] * 24)
    result = fe.optimize(
        prompt="Classify the ticket.",
        train=rows[:25],
        val=rows[25:],
        metric=lambda row, output: next(scores, 1.0),
        llm="simulated",
        algorithm="ace",
        budget=fe.Budget(proposals=20),
        clock="virtual",
        progress=False,
    )
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score
    assert result.best.artifact == result.candidates[0].artifact
    told = ": nothing better than the seed was found, whose own texts were scored again"
    assert f" → {result.best.score:.4f}" in repr(result)
    assert told in repr(result)
    assert told in result._repr_html_()
    assert pickle.loads(pickle.dumps(result)).best == result.best
    assert result.to_json()["best"] == {**result.best.to_json(), "as_seed": True}


def test_of_a_seed_that_stays_the_best_it_is_said_that_nothing_better_was_found(result: fe.Result) -> None:
    assert "nothing better" not in repr(result)
    assert result.best is not None
    assert result.seed_score is not None
    kept = replace(result, best=replace(result.best, score=result.seed_score))
    assert "]: nothing better than the seed was found (" in repr(kept)


@pytest.mark.parametrize(("limit", "most"), [("tokens", 1), ("seconds", 1)])
def test_a_budget_that_is_too_small_for_a_proposal_is_told(limit: str, most: int) -> None:
    limits = {limit: most}
    result = fe.optimize(budget=fe.Budget(**limits), clock="virtual", progress=False)
    what = "time" if limit == "seconds" else limit
    told = f"nothing was proposed before the budget was used up: give more {what} (flowevolve.plan says how much)"
    assert told in repr(result)
    assert told in result._repr_html_()
    shown = io.StringIO()
    Console(file=shown, width=300).print(summarize(result.to_json()))
    assert told in shown.getvalue()


class NeverAnswers:
    """A task whose rollouts never end."""

    name = "never"
    data = Dataset([Example("t", {})], [Example("v", {})])

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "seed"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        await anyio.sleep_forever()
        raise AssertionError


def test_a_run_that_is_cut_off_names_the_stage_that_still_has_work() -> None:
    result = fe.optimize(NeverAnswers(), budget=fe.Budget(seconds=10), clock="virtual", progress=False)
    table = result.to_json()
    assert (table["held_items"], table["held_at"], result.report.held) == (1, {"evaluate": 1}, 1)
    told = "when the run was cut off, work was still open: 1 item at evaluate"
    shown = io.StringIO()
    Console(file=shown, width=300).print(summarize(table))
    for text in (repr(result), result._repr_html_(), shown.getvalue()):
        assert told in text
        assert "give more time (flowevolve.plan says how much), unless its open work never ends" in text
    assert told in repr(pickle.loads(pickle.dumps(result)))
    assert "work was still open" not in repr(
        fe.optimize(budget=fe.Budget(proposals=1), clock="virtual", progress=False)
    )


def test_one_proposal_is_told_as_one() -> None:
    result = fe.optimize(budget=fe.Budget(proposals=1), clock="virtual", progress=False)
    assert ", 1 proposal in " in repr(result)
    assert "stopped by the limit on proposals" in repr(result)


def test_what_is_shown_in_html_is_escaped() -> None:
    assert html([("a<b", "<i>")], {"<c>": "<script>x</script>"}) == (
        "<table><tr><th>a&lt;b</th><td>&lt;i&gt;</td></tr></table>"
        "<details><summary>best &lt;c&gt;</summary><pre>&lt;script&gt;x&lt;/script&gt;</pre></details>"
    )


def test_candidates_are_those_of_the_pool(result: fe.Result) -> None:
    kept = {candidate.id: candidate for _, candidate in result.report.pool.candidates()}
    assert [each.id for each in result.candidates] == list(kept)
    seed = result.candidates[0]
    assert (seed.operator, seed.parents, seed.status, seed.score) == ("seed", (), "confirmed", result.seed_score)
    assert seed.examples == len(kept[seed.id].scores)
    assert all(each.components == kept[each.id].artifact.components for each in result.candidates)


def test_a_run_directory_has_those_that_were_turned_down_as_well(tmp_path: Path) -> None:
    result = evolved(tmp_path / "run")
    by_status = {status: [each for each in result.candidates if each.status == status] for status in ("rejected",)}
    assert by_status["rejected"]
    assert all(each.components and each.pool is None for each in by_status["rejected"])
    confirmed = [each for each in result.candidates if each.status == "confirmed"]
    assert [each.id for each in confirmed] == [each.id for each in result.report.pool.snapshot().candidates()]


def same(loaded: fe.Result, result: fe.Result) -> bool:
    """Whether two results say the same, apart from the latency, which is not written."""
    assert list(loaded.candidates) == list(result.candidates)
    assert loaded.best == result.best
    assert loaded.lineage() == result.lineage()
    assert repr(loaded) == repr(result)
    assert loaded._repr_html_() == result._repr_html_()
    assert loaded.frontier == result.frontier
    return json.dumps(loaded.to_json()) == json.dumps(result.to_json())


def test_a_result_is_the_same_in_a_pickle_a_file_and_a_run_directory(tmp_path: Path) -> None:
    result = evolved(tmp_path / "run")
    assert same(pickle.loads(pickle.dumps(result)), result)
    assert same(fe.Result.load(result.save(tmp_path / "saved.json")), result)
    assert same(fe.Result.load(str(tmp_path / "run")), result)
    assert fe.Result.load(str(tmp_path / "run")).directory == result.directory == tmp_path / "run"
    again = pickle.loads(pickle.dumps(fe.Result.load(tmp_path / "saved.json")))
    assert same(fe.Result.load(again.save(str(tmp_path / "again.json"))), result)
    with pytest.raises(fe.InputError, match=r"result\.report is not kept in files and pickles"):
        _ = again.report


def test_figures_and_the_page_are_made_from_the_run_directory(
    result: fe.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = fe.optimize(budget=fe.Budget(proposals=3), clock="virtual", progress=False, out=tmp_path / "run")
    figure = recorded.plot()
    assert [axes.get_xlabel() for axes in figure.axes] == ["time (min)"]
    assert fe.Result.load(tmp_path / "run").plot("timeline").axes
    assert recorded.write_page() == tmp_path / "run" / "report.html"
    assert recorded.write_page(tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(fe.InputError, match="there is no figure 'scores'; did you mean 'score'"):
        recorded.plot("scores")
    for made in (result.plot, result.write_page):
        with pytest.raises(fe.InputError, match=rf"result\.{made.__name__} is made from a run directory"):
            made()
    for module in ("style", "score"):
        monkeypatch.delitem(sys.modules, f"flowevolve.page.figures.{module}")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        fe.InputError, match=r"^figures are drawn with matplotlib: pip install 'flowevolve\[figures\]'$"
    ):
        recorded.plot()


def test_a_limit_in_time_is_told_as_that_whatever_unit_it_was_given_in(capsys: pytest.CaptureFixture[str]) -> None:
    result = fe.optimize(budget=fe.Budget(minutes=1), clock="virtual")
    assert "stopped by the time limit" in repr(result)
    assert "<th>stopped by</th><td>the time limit after" in result._repr_html_()
    assert result.stop_reason == "seconds"
    assert "stopping: the time limit; " in capsys.readouterr().err


def test_parts_are_read_as_they_were_written(result: fe.Result) -> None:
    loaded = pickle.loads(pickle.dumps(result))
    assert loaded.llm.usage == result.llm.usage
    assert {name: counts.accepted for name, counts in loaded.by_model.items()} == {
        name: counts.accepted for name, counts in result.by_model.items()
    }
    assert loaded.traffic == result.traffic


class Several:
    """A task with a test split and two components."""

    name = "several"
    data = Dataset(*([Example(f"{split}{n}", {}) for n in range(6)] for split in ("train", "val", "test")))

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"first": "x", "second": "y"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        output = await llm([fe.Message("system", artifact["first"]), fe.Message("user", artifact["second"])])
        calls = (Call("first", {"request": "hello"}, output), Call("second", {"request": "hello"}, output))
        said = "Not met: Do not use any commas."
        return Rollout(example.id, output, Score(min(1.0, len(artifact["first"]) / 3000), said, passed=False), calls)


def test_held_out_scores_are_read_again(tmp_path: Path) -> None:
    config = fe.Config.model_validate({"budget": {"proposals": 6}, "clock": "virtual", "held_out": True})
    result = run(config)
    assert result.held_out is not None
    loaded = fe.Result.load(result.save(tmp_path / "saved.json"))
    assert loaded.held_out == result.held_out
    assert "test examples" in loaded._repr_html_()


def run(config: fe.Config) -> fe.Result:
    async def go() -> fe.Result:
        return await fe.run(config, task=Several())

    return fe.clock.run(go, clock="virtual")


def candidate(name: str, parents: Sequence[str], **texts: str) -> FoundCandidate:
    return FoundCandidate(name, "confirmed", "reflect", tuple(parents), 1, "main", 0.5, 3, "", "", fe.Artifact(texts))


def test_lineage_goes_from_the_seed_to_a_candidate_and_says_what_changed() -> None:
    candidates = [
        candidate("c0", (), a="1", b="1"),
        candidate("c1", ("c0",), a="2", b="1"),
        candidate("c2", ("c0",), a="1", b="3"),
        candidate("c3", ("lost", "c1", "c2"), a="2", b="3"),
    ]
    assert [(step.candidate.id, step.changed) for step in lineage(candidates, "c3")] == [
        ("c0", ()),
        ("c1", ("a",)),
        ("c3", ("b",)),
    ]
    with pytest.raises(fe.InputError, match=re.escape("lineage: there is no candidate 'c33'; did you mean 'c3'?")):
        lineage(candidates, "c33")


def test_the_lineage_of_the_best_is_the_default(result: fe.Result) -> None:
    assert result.best is not None
    steps = result.lineage()
    assert steps[0].candidate.operator == "seed"
    assert steps[-1].candidate.id == result.best.id
    assert all(step.changed == ("system_prompt",) for step in steps[1:])


def test_candidates_are_a_data_frame(result: fe.Result) -> None:
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert list(frame["id"]) == [each.id for each in result.candidates]
    assert frame["system_prompt"][0] == result.candidates[0].components["system_prompt"]
    assert {"status", "operator", "score", "parents", "born"} <= set(frame.columns)


def test_without_pandas_it_is_said_what_to_install(result: fe.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(fe.InputError, match="pip install pandas"):
        result.to_pandas()


def test_the_result_so_far_of_a_run_that_was_killed_is_loaded_from_its_journal(tmp_path: Path) -> None:
    whole = evolved(tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    loaded = fe.Result.load(tmp_path / "run")
    assert loaded.stop_reason == "interrupted"
    assert whole.best is not None
    assert loaded.best == replace(whole.best, fresh=None)
    assert loaded.seed_score == whole.seed_score
    assert (loaded.proposals, loaded.accepted) == (whole.proposals, whole.accepted)
    assert loaded.llm == replace(whole.llm, latency_seconds=0.0)
    assert loaded.failed_rollouts == whole.failed_rollouts
    assert list(loaded.candidates) == list(whole.candidates)
    assert "stopped by an interrupt" in repr(loaded)
    assert loaded._repr_html_().startswith("<table>")
    assert loaded.plot("timeline").axes
    assert same(fe.Result.load(loaded.save(tmp_path / "saved.json")), loaded)


@pytest.mark.filterwarnings("ignore:.* are also among those that prompts are made from")
def test_the_result_so_far_of_a_run_that_was_cancelled_is_loaded_and_the_run_goes_on(tmp_path: Path) -> None:
    rows = [{"text": "It crashes.", "label": "bug"}] * 8
    scopes, calls = list[anyio.CancelScope](), count(1)

    async def metric(row: dict[str, str], output: str) -> float:
        if next(calls) == 30:
            scopes[0].cancel()
            await anyio.sleep_forever()
        return 0.5

    async def evolve() -> fe.Result | None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            return await fe.optimize_async(
                prompt="Classify the ticket.",
                train=rows,
                val=rows,
                metric=metric,
                llm="simulated",
                budget=fe.Budget(proposals=3),
                out=tmp_path / "run",
                resume=True,
                progress=False,
            )
        return None

    assert anyio.run(evolve) is None
    loaded = fe.Result.load(tmp_path / "run")
    assert (loaded.seed_score, loaded.stop_reason) == (0.5, "interrupted")
    assert loaded.best is not None
    assert loaded.best.components == {"prompt": "Classify the ticket."}
    result = anyio.run(evolve)
    assert result is not None
    assert result.proposals == 3


def test_of_a_run_that_is_going_on_there_is_no_result_yet(tmp_path: Path) -> None:
    evolved(tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    lock = claim(tmp_path / "run")
    with pytest.raises(fe.InputError, match=r"this run is still going on; flowevolve status .*run shows how far it is"):
        fe.Result.load(tmp_path / "run")
    lock.release()


def test_a_run_that_never_began_has_no_result(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "run", fe.Config(budget=fe.Budget(minutes=1)).model_dump(mode="json")).close()
    with pytest.raises(
        fe.InputError, match=r"has not begun, so it has no result; to begin it: flowevolve resume .*run"
    ):
        fe.Result.load(tmp_path / "run")


def test_a_folder_without_a_run_is_not_said_to_hold_one_that_has_not_ended(tmp_path: Path) -> None:
    with pytest.raises(fe.InputError, match=re.escape(f"{tmp_path} holds no run")):
        fe.Result.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, ": no such file or run directory"),
        ("text,label\n", " is not a saved result"),
        ("[]", " is not a saved result"),
        ('{"result": {"schema": 1}, "candidates": []}', " is not a saved result"),
        ('{"result": {"schema": 9}, "candidates": []}', " is not a result that this version of flowevolve can read"),
    ],
)
def test_what_is_no_result_is_told_in_a_line(text: str | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "saved.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(fe.InputError, match=re.escape(f"{file}{problem}")):
        fe.Result.load(file)


def test_the_file_of_a_run_is_neither_loaded_alone_nor_written_over(tmp_path: Path) -> None:
    result = evolved(tmp_path / "run")
    before = (tmp_path / "run" / "result.json").read_text()
    with pytest.raises(fe.InputError, match=r"belongs to a run; load the run: Result\.load\('.*run'\)"):
        fe.Result.load(tmp_path / "run" / "result.json")
    with pytest.raises(fe.InputError, match="is the run's own file; give another name"):
        result.save(tmp_path / "run" / "result.json")
    assert (tmp_path / "run" / "result.json").read_text() == before


def test_a_result_is_not_saved_over_a_directory(result: fe.Result, tmp_path: Path) -> None:
    with pytest.raises(fe.InputError, match="is a directory; give the path of a file"):
        result.save(tmp_path)
    with pytest.raises(fe.InputError, match=r"can't be written: No such file or directory$"):
        result.save(tmp_path / "missing" / "saved.json")
