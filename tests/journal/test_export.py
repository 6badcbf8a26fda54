"""An export is what the run was: its pool, its calls and its best artifact, also in the middle of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected, PoolCommitted
from flowevolve.core.events import EventLog
from flowevolve.core.item_ids import ItemId
from flowevolve.core.logged_changes import logged_change
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.core.pool import Add, Annotate, Candidate, Change, Move, Note, Pool, Vetoed
from flowevolve.journal.export import Format, export
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.runner.run import run

RECORD = CallRecord(
    "task",
    CallScope("screen", "3.0/e1", "c1", 2, 0),
    ChatRequest("m", (Message("user", "lone \ud800"),), 0.5, None, 7),
    ChatReply("hé", Usage(10, 5, 3)),
    None,
    1,
    10.0,
    10.5,
    12.0,
)
FORMATS: Sequence[Format] = ("jsonl", "parquet")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Recording:
    """A pool whose changes are recorded as the runtime records them."""

    def __init__(self, path: Path) -> None:
        self.pool = Pool(("main", "side"))
        self.directory = RunDirectory(path, {})
        self.log = EventLog(lambda: 0.0)
        self.log.subscribe(self.directory.event)

    def propose(self, candidate: Candidate) -> None:
        self.pool.register(candidate)
        self.log.emit(CandidateProposed.of(candidate, ItemId("0.0")))

    def commit(self, *changes: Change, best: str | None = None) -> None:
        self.pool.commit(changes, cause="0.0", time=0.0)
        logged = tuple(map(logged_change, changes))
        self.log.emit(PoolCommitted(self.pool.version, ItemId("0.0"), "update", logged, best, None))


def test_the_tables_hold_the_pool_as_it_is(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    artifact = Artifact({"main.py": "print()", "a/b": "x"}, "program")
    candidates = [Candidate(f"c{number}", artifact, attributes={"first": number}) for number in range(4)]
    candidates.append(Candidate("c4", Artifact({"p": "q"}), ("c0", "c1"), "merge", 3))
    for candidate in candidates:
        made.propose(candidate)
    made.commit(Add(candidates[0].scored({"e1": 0.5, "e2": 1.0})), Note("memory", {"x": 1}), best="c0")
    made.commit(Add(candidates[1].scored({"e1": 0.0}), "speculative", "side"), best="c0")
    made.commit(Annotate("c0", {"second": [1]}), best="c0")
    made.pool.reject("c2")
    made.log.emit(CandidateRejected("c2", ItemId("1"), "screened"))
    made.commit(Move("c1", "confirmed", {"e1": 0.25, "e2": 0.75}, "side"), Annotate("c0", {}, {"e1": 0.125}), best="c1")
    made.directory.close()
    done = export(tmp_path, tmp_path / "out")
    exported = rows(tmp_path / "out" / "candidates.jsonl")
    assert (done.candidates, done.calls) == (5, 0)
    for row, candidate in zip(exported, candidates, strict=True):
        now = candidate if row["status"] == "rejected" else made.pool[candidate.id]
        assert row["status"] == made.pool.status(candidate.id)
        assert row["pool"] == made.pool.pool_of(candidate.id)
        assert (row["scores"], row["attributes"]) == (dict(now.scores), dict(now.attributes))
        assert row["mean"] == (now.mean_score if now.scores else None)
        assert (row["id"], row["operator"], row["born"]) == (candidate.id, candidate.operator, candidate.born)
        assert (row["artifact"], row["kind"]) == (candidate.artifact.id, candidate.artifact.kind)
        assert row["components"] == dict(candidate.artifact)
    assert rows(tmp_path / "out" / "lineage.jsonl") == [
        {"child": "c4", "parent": "c0"},
        {"child": "c4", "parent": "c1"},
    ]
    assert rows(tmp_path / "out" / "scores.jsonl") == [
        {"candidate": "c0", "example": "e1", "score": 0.125},
        {"candidate": "c1", "example": "e1", "score": 0.25},
        {"candidate": "c1", "example": "e2", "score": 0.75},
    ]
    best = {file.name: file.read_text() for file in (tmp_path / "out" / "best").iterdir()}
    assert best == {"main.py": "print()", "a%2Fb.txt": "x"}


def test_programs_that_came_into_no_pool_keep_the_score_and_the_failure_that_they_were_found_to_have(
    tmp_path: Path,
) -> None:
    made = Recording(tmp_path)
    found: Sequence[tuple[float, str | None]] = ((1.0, None), (0.5, None), (0.0, "timeout"))
    for number, (score, failure) in enumerate(found):
        candidate = Candidate(f"c{number}", Artifact({"main.py": "print()"}, "program"))
        made.propose(candidate)
        said: dict[str, JSON] = {"stage": "assess", "item": "0.0", "candidate": candidate.id}
        made.log.emit(OwnEvent("candidate.assessed", said | {"score": score, "failure": failure}))
        if number:
            made.pool.reject(candidate.id)
            made.log.emit(CandidateRejected(candidate.id, ItemId("1"), "it is worse"))
        else:
            made.commit(Add(candidate.scored({"e1": score})), best="c0")
    made.directory.close()
    export(tmp_path, tmp_path / "out")
    exported = rows(tmp_path / "out" / "candidates.jsonl")
    assert [(row["assessed_score"], row["failure"]) for row in exported] == list(found)
    assert [row["mean"] for row in exported] == [1.0, None, None]


def test_best_holds_the_files_of_the_best_and_none_of_an_earlier_best(tmp_path: Path) -> None:
    best = tmp_path / "out" / "best"
    candidates = [Candidate("c0", Artifact({"old.py": "1", "a": "1"})), Candidate("c1", Artifact({"new.py": "2"}))]
    for upto in (1, 2):
        made = Recording(tmp_path / f"run{upto}")
        for candidate in candidates[:upto]:
            made.propose(candidate)
            made.commit(Add(candidate), best=candidate.id)
        made.directory.close()
        export(tmp_path / f"run{upto}", tmp_path / "out")
        (best / "mine.txt").write_text("mine")
    assert {file.name: file.read_text() for file in best.iterdir()} == {"new.py": "2", "mine.txt": "mine"}


@pytest.mark.parametrize(
    ("components", "files"),
    [
        ({"a": "1", "a.txt": "2"}, {"a.txt": "2", "a-2.txt": "1"}),
        ({"a-2.txt": "1", "a": "2", "a.txt": "3"}, {"a-2.txt": "1", "a-3.txt": "2", "a.txt": "3"}),
        ({"Main.py": "1", "main.py": "2"}, {"Main.py": "1", "main-2.py": "2"}),  # one file where case does not count
        ({"lone \ud800": "1"}, {"lone %5Cud800.txt": "1"}),
        ({"..": "1", "../up.txt": "2"}, {"...txt": "1", "..%2Fup.txt": "2"}),
    ],
)
def test_components_whose_names_make_one_file_get_one_each(
    tmp_path: Path, components: Mapping[str, str], files: Mapping[str, str]
) -> None:
    made = Recording(tmp_path)
    candidate = Candidate("c0", Artifact(components))
    made.propose(candidate)
    made.commit(Add(candidate), best="c0")
    made.directory.close()
    export(tmp_path)
    assert {file.name: file.read_text() for file in (tmp_path / "export" / "best").iterdir()} == files


def test_calls_are_exported_with_their_texts(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {})
    directory.journal.call(RECORD)
    directory.journal.call(replace(RECORD, reply=None, error="x"))
    directory.close()
    export(tmp_path)
    first, failed = rows(tmp_path / "export" / "calls.jsonl")
    assert first["messages"] == [{"role": "user", "content": "lone \ud800"}]
    assert (first["reply"], first["prompt_tokens"], first["seed"], first["cached"]) == ("hé", 10, 7, False)
    assert (failed["reply"], failed["prompt_tokens"], failed["error"]) == (None, None, "x")


def test_all_tables_have_the_same_columns_as_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = Recording(tmp_path)
    for candidate in (Candidate("c0", Artifact({"p": "q"})), Candidate("c1", Artifact({"p": "r"}), ("c0",))):
        made.propose(candidate)
        made.commit(Add(candidate.scored({"e1": 0.5})))
    made.commit(Vetoed("c0"))
    made.directory.journal.call(RECORD)
    made.directory.close()
    for file_format in FORMATS:
        export(tmp_path, file_format=file_format)
    for name in ("candidates", "scores", "lineage", "calls"):
        plain = rows(tmp_path / "export" / f"{name}.jsonl")
        table = parquet.read_table(tmp_path / "export" / f"{name}.parquet")
        assert [list(row) for row in plain] == [table.column_names] * table.num_rows, name
    table = parquet.read_table(tmp_path / "export" / "candidates.parquet")
    assert table.column("vetoed").to_pylist() == [True, False]


def test_a_running_run_is_exported_as_it_was_at_one_event(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    made.propose(Candidate("c0", Artifact({"p": "q"})))
    made.directory.journal.call(RECORD)
    made.directory.journal.close()  # so that all of it is on disk, while the directory is still at work
    assert export(tmp_path).candidates == 1
    assert rows(tmp_path / "export" / "candidates.jsonl")[0]["status"] == "proposed"
    assert not (tmp_path / "export" / "best").exists()
    made.directory.close()


def test_a_whole_run_and_its_result_agree(tmp_path: Path) -> None:
    config = parse_config({"clock": "virtual", "budget": {"proposals": 12}}, "test")

    async def go() -> None:
        result = await run(config, out=tmp_path)
        assert result.best is not None

    clock.run(go, clock="virtual")
    export(tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    candidates = {row["id"]: row for row in rows(tmp_path / "export" / "candidates.jsonl")}
    best = candidates[result["best"]["id"]]
    assert best["mean"] == result["best"]["score"]
    for name, text in result["best"]["components"].items():
        assert (tmp_path / "export" / "best" / f"{name}.txt").read_text() == text
    assert len(rows(tmp_path / "export" / "calls.jsonl")) == result["llm"]["requests"]
    assert (
        sum(row["status"] == "confirmed" and row["operator"] != "seed" for row in candidates.values())
        == result["accepted"]
    )


def test_places_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "run", {}).close()
    with pytest.raises(InputError, match="no such run directory"):
        export(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file can't be written"):
        export(tmp_path / "run", tmp_path / "file")


@pytest.mark.parametrize("file_format", FORMATS)
def test_links_that_somebody_planted_are_replaced_and_not_followed(tmp_path: Path, file_format: Format) -> None:
    """A run directory may come from somebody else: nothing outside it is written when it is exported."""
    if file_format == "parquet":
        pytest.importorskip("pyarrow")
    run, outside = tmp_path / "run", tmp_path / "outside"
    made = Recording(run)
    candidate = Candidate("c0", Artifact({"p": "mine"}))
    made.propose(candidate)
    made.commit(Add(candidate), best="c0")
    made.directory.close()
    best = run / "export" / "best"
    best.mkdir(parents=True)
    outside.write_text("precious")
    links = [run / "export" / f"{name}.{file_format}" for name in ("candidates", "scores", "lineage", "calls")]
    for link in [*links, best / "p.txt"]:
        link.symlink_to(outside)
    export(run, file_format=file_format)
    assert outside.read_text() == "precious"
    assert (best / "p.txt").read_text() == "mine"
    assert not any(link.is_symlink() for link in links)


@pytest.mark.parametrize("folder", ["export", "export/best"])
def test_a_folder_of_an_export_that_is_a_link_is_refused(tmp_path: Path, folder: str) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    made = Recording(run)
    candidate = Candidate("c0", Artifact({"p": "mine"}))
    made.propose(candidate)
    made.commit(Add(candidate), best="c0")
    made.directory.close()
    outside.mkdir()
    (outside / "p.txt").write_text("precious")
    (run / folder).parent.mkdir(exist_ok=True)
    (run / folder).symlink_to(outside)
    with pytest.raises(
        InputError, match=f"{folder} is a link to .*outside; remove it, or name another folder with --out"
    ):
        export(run)
    assert [(file.name, file.read_text()) for file in outside.iterdir()] == [("p.txt", "precious")]


def test_a_link_that_the_user_names_is_the_users_choice(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "run", {}).close()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert export(tmp_path / "run", tmp_path / "link").candidates == 0
    assert (tmp_path / "real" / "candidates.jsonl").is_file()
