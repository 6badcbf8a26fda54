"""ACE on the simulated server: both modes and both adaptations, and what must hold whatever is in flight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bench._lib.house_style import make_rows
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.ace import ACE, commit
from flowevolve.algorithms.ace.commit import Commit, Curating, DueAfterSample, Progress
from flowevolve.algorithms.ace.payloads import Learned
from flowevolve.algorithms.ace.playbook import Playbook
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.pool import Note
from flowevolve.core.task import Dataset
from flowevolve.prompts.playbook import CURATE_TITLE, GATHER_TITLE, LESSON_TITLE, MERGE_TITLE, USED_HEADING
from flowevolve.runner.result import Result
from flowevolve.sim.worlds.rules import playbook as rules_playbook
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.instructions import InstructionFollowing
from tests.support.depth import cuts, examples
from tests.support.interruption import Fact, asked, events_of
from tests.support.whole_runs import go_on, notes

TASK = house_style_task(make_rows(rules=8, per_example=3, overlap=0.3, rows=40, seed=1))
SMALL = house_style_task(make_rows(rules=5, per_example=2, overlap=0.3, rows=10, seed=1))
MANY = {name: {"workers": 64, "max_workers": 64} for name in ("generate", "reflect")}
SELDOM = {"validate_every": 64}


def evolve(
    algorithm: Mapping[str, object] | None = None,
    *,
    task: InstructionFollowing = TASK,
    before: Sequence[Fact] = (),
    **sections: object,
) -> tuple[Result, list[Fact]]:
    """Run, or go on; returns the result and all facts, those before included."""
    return go_on(
        {
            "algorithm": {"name": "ace", "epochs": 1, "validate_every": 10, **(algorithm or {})},
            "budget": {"hours": 2},
            **sections,
        },
        task,
        before,
    )


def check(result: Result, facts: Sequence[Fact]) -> None:
    """Bullets are neither lost nor doubled, and no lesson is."""
    book = Playbook.as_of(result.report.pool.updates_between(0))
    edits = notes(result, "playbook")
    operations = [each for edit in edits for each in cast("list[dict[str, JSON]]", edit["operations"])]
    added = sum(each["verb"] == "ADD" for each in operations)
    numbers = sorted(int(bullet.id[-5:]) for bullet in (*book.bullets, *book.gone.values()))
    assert numbers == list(range(1, added + 1))
    assert book.conflicts == 0  # what came too late was left out before the commit
    texts = Counter(bullet.text.casefold() for bullet in book.bullets)
    assert not [text for text, count in texts.items() if count > 1 and text in _added_texts(operations)]
    learned = Counter(
        text
        for note in notes(result, "ace.sample")
        for text in cast("list[str]", cast("dict[str, JSON]", note["lesson"])["texts"])
    )
    given = [event.data["curate"] for event in events_of(facts, "ace.learned")]
    given += [event.data["lessons"] for event in events_of(facts, "ace.finishing")]
    curated = Counter(
        text for each in given for lesson in cast("list[dict[str, list[str]]]", each) for text in lesson["texts"]
    )
    assert curated == learned


def _added_texts(operations: Sequence[Mapping[str, JSON]]) -> set[str]:
    """Those that no update or merge wrote, which may make two bullets alike."""
    written = {str(each["text"]).casefold() for each in operations if each["verb"] in ("UPDATE", "MERGE")}
    return {str(each["text"]).casefold() for each in operations if each["verb"] == "ADD"} - written


def test_a_playbook_makes_answers_better() -> None:
    result, facts = evolve({"epochs": 3, "validate_every": 16})
    check(result, facts)
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score + 0.1
    assert result.report.stop_reason == "exhausted"
    assert len(notes(result, "ace.sample")) == 3 * len(TASK.data.train)


@pytest.mark.parametrize("adaptation", ["offline", "online"])
def test_at_width_one_both_modes_take_the_same_decisions(adaptation: str) -> None:
    kinds = ("ace.selected", "ace.learned", "ace.edited", "candidate.proposed", "pool.commit")
    runs = []
    for mode in ("stream", "sync"):
        options = {"mode": mode, "max_in_flight": 1, "adaptation": adaptation, "window": 6, "refine_every": 4}
        _, facts = evolve(options)
        runs.append([(fact.kind, fact.data) for fact in facts if isinstance(fact, Event) and fact.kind in kinds])
    assert runs[0] == runs[1]


def test_no_lesson_is_lost_when_the_curator_comes_seldom() -> None:
    result, facts = evolve({"curator_frequency": 7})
    check(result, facts)
    assert events_of(facts, "ace.finishing")


def gathering(fan_in: int) -> tuple[Result, list[Fact]]:
    """Combee over ACE, as published: steps of 12 samples, whose lessons are gathered and curated once."""
    options = {"mode": "sync", "width": 12, "curator_frequency": 12, "fan_in": fan_in, "epochs": 6, "refine_every": 0}
    return evolve(options)


def test_lessons_of_many_samples_are_gathered_in_small_calls() -> None:
    result, facts = gathering(3)
    check(result, facts)
    gathered = events_of(facts, "lessons.gathered")
    assert gathered
    for event in gathered:
        name = f"{event.data['item']}/gather/0."
        calls = [each for each in facts if isinstance(each, CallRecord) and each.scope.item.startswith(name)]
        first = [each for each in calls if len(asked(each)) == 1]  # some replies are asked for once more
        assert len(first) == -(-2 * cast(int, event.data["samples"]) // 3)
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score


def test_lessons_that_fit_into_one_call_are_not_gathered() -> None:
    _, facts = gathering(12)
    assert events_of(facts, "curated")
    assert not events_of(facts, "lessons.gathered")


def test_where_nothing_comes_of_gathering_the_curator_gets_the_lessons_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = {**rules_playbook.ANSWERS, GATHER_TITLE: lambda prompt, params, rng: "Much in common."}
    monkeypatch.setattr(rules_playbook, "ANSWERS", silent)
    result, facts = gathering(3)
    check(result, facts)
    assert {event.data["lessons"] for event in events_of(facts, "lessons.gathered")} == {0}
    assert events_of(facts, "gathering.failed")
    assert events_of(facts, "curated")
    assert Playbook.as_of(result.report.pool.updates_between(0)).bullets


def test_lessons_are_added_as_they_are_where_no_entry_of_a_curation_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wordy = {**rules_playbook.ANSWERS, CURATE_TITLE: lambda prompt, params, rng: '[{"ADD": "Take up the lessons."}]'}
    monkeypatch.setattr(rules_playbook, "ANSWERS", wordy)
    result, facts = evolve({"refine_every": 0, "max_in_flight": 1})
    check(result, facts)
    given = [cast("list[dict[str, list[str]]]", event.data["curate"]) for event in events_of(facts, "ace.learned")]
    lessons = {text for each in given for lesson in each for text in lesson["texts"]}
    bullets = Playbook.as_of(result.report.pool.updates_between(0)).bullets
    assert {bullet.text.casefold() for bullet in bullets} == {text.casefold() for text in lessons} != set()
    assert len(events_of(facts, "reply.unparsable")) >= 2 * len(events_of(facts, "curation.failed")) > 0


def test_notes_stay_as_they_are_where_what_is_to_stand_for_them_is_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    excuse = "I'm sorry, but these notes contradict each other."
    asked: list[str] = []

    def answer(prompt: str, params: object, rng: object) -> str:
        asked.append(prompt)
        return f"```\n{excuse}\n```"

    sorry = {**rules_playbook.ANSWERS, MERGE_TITLE: answer}
    monkeypatch.setattr(rules_playbook, "ANSWERS", sorry)
    result, facts = evolve({"refine_every": 2, "duplicate": 0.5, "unlike": 0.3, "embedding": {"by": "hashing"}})
    check(result, facts)
    assert events_of(facts, "merge.failed")
    assert set(Counter(asked).values()) == {2}, "once more, and never again"
    book = Playbook.as_of(result.report.pool.updates_between(0))
    assert excuse not in {bullet.text for bullet in (*book.bullets, *book.gone.values())}


def test_a_resumed_run_does_not_ask_again_about_notes_whose_merged_text_could_not_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sorry = {**rules_playbook.ANSWERS, MERGE_TITLE: lambda prompt, params, rng: "```\nI'm sorry, they differ.\n```"}
    monkeypatch.setattr(rules_playbook, "ANSWERS", sorry)
    options = {"refine_every": 2, "duplicate": 0.5, "unlike": 0.3, "embedding": {"by": "hashing"}}
    _, facts = evolve(options)
    ends = [place + 1 for place, fact in enumerate(facts) if isinstance(fact, Event) and fact.kind == "merge.failed"]
    assert ends
    for end in (ends[0], (ends[0] + len(facts)) // 2):
        _, combined = evolve(options, before=facts[:end])
        asked_to_merge = Counter(prompt for call in _calls(combined) if (prompt := _merges(call)))
        assert set(asked_to_merge.values()) == {2}, "once more, and never again"


def _merges(call: CallRecord) -> str | None:
    """The prompt of a call that asks to merge notes."""
    return next((said.content for said in asked(call)[:1] if said.content.startswith(MERGE_TITLE)), None)


def test_online_a_window_is_tested_before_anything_is_learnt_from_it() -> None:
    result, facts = evolve({"adaptation": "online", "window": 5})
    check(result, facts)
    tested: set[int] = set()
    samples = 0
    for fact in facts:
        if not isinstance(fact, Event):
            continue
        if fact.kind == "pool.commit":
            for change in cast("list[dict[str, JSON]]", fact.data["changes"]):
                if change.get("note") == "ace.tested":
                    tested.add(cast(int, cast("dict[str, JSON]", change["data"])["window"]))
        elif fact.kind == "ace.selected" and fact.data["window"] is None:
            assert samples // 5 in tested
            samples += 1
    assert samples == len(TASK.data.train)


def test_a_window_whose_test_came_to_nothing_is_tested_again_when_the_run_goes_on() -> None:
    """There were rollouts left for some of its samples, and not for all."""
    online = {"adaptation": "online", "window": 5, "max_rounds": 1}
    before, facts = evolve(online, budget={"rollouts": 17})
    assert before.report.stop_reason == "rollouts"
    assert [event.data["window"] for event in events_of(facts, "ace.selected")][-1] == 1
    assert [note["window"] for note in notes(before, "ace.tested")] == [0]
    result, _ = evolve(online, before=facts)
    assert result.report.stop_reason == "exhausted"
    assert [note["window"] for note in notes(result, "ace.tested")] == [0, 1, 2, 3]


def test_embeddings_can_be_made_without_a_model() -> None:
    by_role, facts = evolve({"refine_every": 5, "max_in_flight": 1})
    assert {call.role for call in _calls(facts)} == {"task", "reflection", "embedding"}
    hashed, facts = evolve({"refine_every": 5, "max_in_flight": 1, "embedding": {"by": "hashing"}})
    assert {call.role for call in _calls(facts)} == {"task", "reflection"}
    assert notes(hashed, "playbook") == notes(by_role, "playbook")  # the simulated model hashes words, too


def _calls(facts: Sequence[Fact]) -> list[CallRecord]:
    return [fact for fact in facts if isinstance(fact, CallRecord)]


def test_edits_that_missed_something_are_reconciled() -> None:
    result, facts = evolve({"max_in_flight": 16, "epochs": 2})
    check(result, facts)
    assert events_of(facts, "edit.reconciled")
    assert result.report.staleness.seen


@settings(examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1000),
    frequency=st.integers(1, 9),
    preset=st.sampled_from(["normal", "adversarial"]),
    policy=st.sampled_from(["reflective", "full"]),
)
def test_bullets_are_neither_lost_nor_doubled_with_64_samples_in_flight(
    seed: int, frequency: int, preset: str, policy: str
) -> None:
    """Twice as many samples as are in flight, so that half of them meet a playbook that changes under them."""
    options = {"max_in_flight": 64, "curator_frequency": frequency, "refine_every": 5, "epochs": 8, **SELDOM}
    result, facts = evolve(options, seed=seed, sim={"preset": preset}, stages=MANY, staleness={"policy": policy})
    check(result, facts)
    assert most_open(facts) == 64


def most_open(facts: Sequence[Fact]) -> int:
    """Flows that were open at once."""
    steps = [{"flow.open": 1, "flow.close": -1}.get(fact.kind, 0) for fact in facts if isinstance(fact, Event)]
    return max(accumulate(steps))


def _lose_a_lesson(patch: pytest.MonkeyPatch) -> None:
    """The sample that makes a curation due hands on all lessons but its own."""
    due = Commit._due

    def without(stage: Commit, learned: Learned) -> DueAfterSample:
        return due(stage, learned).model_copy(update={"curate": tuple(stage.progress.pending)})

    patch.setattr(Commit, "_due", without)


def _hand_on_twice(patch: pytest.MonkeyPatch) -> None:
    """Lessons that were given to a curator stay where they wait."""
    note = Progress._note

    def keep(progress: Progress, noted: Note) -> None:
        pending = progress.pending
        note(progress, noted)
        progress.pending = pending if noted.kind == Curating.kind else progress.pending

    patch.setattr(Progress, "_note", keep)


def _commit_everything(patch: pytest.MonkeyPatch) -> None:
    """Edits are committed as they were made, whatever has been said or changed meanwhile."""
    patch.setattr(commit, "_without_repetition", lambda edit, reader: (edit.operations, edit.counts))


def _forget_merged(patch: pytest.MonkeyPatch) -> None:
    """A bullet that became part of another is nowhere."""
    merge = Playbook._merge

    def forget(book: Playbook, names: Sequence[str], text: str) -> None:
        merge(book, names, text)
        for name in names[1:]:
            del book._gone[name]

    patch.setattr(Playbook, "_merge", forget)


@pytest.mark.parametrize("sabotage", [_lose_a_lesson, _hand_on_twice, _commit_everything, _forget_merged])
def test_the_check_finds_what_is_lost_or_doubled(
    sabotage: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the property above means something."""
    sabotage(monkeypatch)
    options = {"max_in_flight": 64, "curator_frequency": 2, "refine_every": 5, "epochs": 8, **SELDOM}
    result, facts = evolve(options, stages=MANY, staleness={"policy": "full"})
    with pytest.raises(AssertionError):
        check(result, facts)


INTERRUPTED: Mapping[str, Mapping[str, object]] = {
    "stream": {"max_in_flight": 4, "validate_every": 3, "refine_every": 2, "max_rounds": 2},
    "sync": {"mode": "sync", "width": 2, "validate_every": 3, "curator_frequency": 2, "max_rounds": 1},
    "online": {"adaptation": "online", "window": 2, "max_in_flight": 3, "max_rounds": 1},
}


@pytest.mark.parametrize("name", list(INTERRUPTED))
def test_a_run_interrupted_after_any_event_or_call_ends_in_good_order(name: str) -> None:
    _, facts = evolve(INTERRUPTED[name], task=SMALL)
    for end in cuts(facts):
        result, combined = evolve(INTERRUPTED[name], task=SMALL, before=facts[:end])
        check(result, combined)
        commits = [event.data["version"] for event in events_of(combined, "pool.commit")]
        assert commits == list(range(1, len(commits) + 1))
        assert len(notes(result, "ace.sample")) == len(SMALL.data.train)


def test_a_given_playbook_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "playbook.md"
    path.write_text("### mistakes\n- [mis-00041] Be brief. (helpful 3, harmful 1)\n")
    result, _ = evolve({"playbook": str(path)})
    book = Playbook.as_of(result.report.pool.updates_between(0))
    bullets = {bullet.id: bullet for bullet in (*book.bullets, *book.gone.values())}
    assert bullets["mis-00041"].helpful >= 3
    assert min(int(name[-5:]) for name in bullets) == 41


def test_an_answer_that_used_no_note_says_nothing_about_those_it_was_shown(tmp_path: Path) -> None:
    """The simulated model says "Used: none" where no note is about a rule that it kept."""
    path = tmp_path / "playbook.md"
    path.write_text("- [str-00001] Water the plants.\n")
    _, facts = evolve({"playbook": str(path)})
    prompts = [asked(fact)[-1].content for fact in facts if isinstance(fact, CallRecord) and fact.role == "reflection"]
    lessons = [prompt for prompt in prompts if prompt.startswith(LESSON_TITLE)]
    assert lessons
    assert not [prompt for prompt in lessons if "str-00001" in prompt.partition(USED_HEADING)[2]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- [calc-00002] four letters", r"line 3: '- \[calc-00002\] four letters' is not read as a bullet"),
        ("- [str-3] a short id", "line 3"),
        ("* [str-00004] a star", "line 3"),
        ("  - [str-00004] indented", "line 3"),
        ("[str-00004] helpful=0 harmful=0 :: as the authors have it", "line 3"),
        ("- [str-00001] again", r"line 3: the id str-00001 comes a second time"),
    ],
)
def test_a_bullet_that_can_not_be_taken_over_is_refused(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "playbook.md"
    path.write_text(f"### strategies\n- [str-00001] Be brief.\n{line}\n")
    with pytest.raises(InputError, match=rf"algorithm\.playbook: .*playbook\.md: {said}"):
        evolve({"playbook": str(path)})


def test_what_does_not_suit_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("nothing")
    with pytest.raises(InputError, match="holds no bullets"):
        evolve({"playbook": str(tmp_path / "empty.md")})
    with pytest.raises(InputError, match="training examples"):
        ACE(InstructionFollowing(Dataset((), ())))
    with pytest.raises(
        InputError, match=r"algorithm: .*duplicate is 0\.5, but has to be at least unlike, which is 0\.9"
    ):
        evolve({"duplicate": 0.5, "unlike": 0.9})
    with pytest.raises(InputError, match="speculate"):
        evolve(speculation={"alpha": {"generate": 0.5}})
