"""What other packages bring: found by name, held to the same checks, and harmless when it is broken."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.registry import Listed, Registry
from flowevolve.archives.base import ARCHIVES
from flowevolve.config.backends import BACKENDS
from flowevolve.config.run import parse_config
from flowevolve.problems.catalog import PROBLEMS
from flowevolve.runner.check import check
from flowevolve.runner.registries import (
    ADMISSIONS,
    ALGORITHMS,
    ALLOCATION,
    BANDITS,
    ORDERINGS,
    RACING,
    STALENESS,
    TASKS,
)
from flowevolve.runner.replay import replay
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from tests.support.site_packages import put_package

ROOT = Path(__file__).parents[2]
GEPA = ROOT / "flowevolve" / "algorithms" / "gepa"


class Site:
    """A folder on the path that packages can be put into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, code: str, points: Mapping[str, Mapping[str, str]]) -> None:
        put_package(self.folder, name, code, points)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    yield Site(folder)
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


def go(sections: Mapping[str, object], out: Path | None = None) -> Result:
    config = parse_config({"clock": "virtual", "budget": {"proposals": 6}, **sections}, "test")

    async def begin() -> Result:
        return await run(config, out=out)

    return clock.run(begin, clock="virtual")


def test_a_shipped_algorithm_does_nothing_that_a_plugin_could_not(site: Site) -> None:
    """The same code in a package of its own makes the same run."""
    copied = site.folder / "other_gepa"
    copied.mkdir()
    for path in GEPA.glob("*.py"):
        (copied / path.name).write_text(path.read_text("utf-8").replace("flowevolve.algorithms.gepa", "other_gepa"))
    site.put("brings_gepa", "", {"flowevolve.algorithms": {"other": "other_gepa:GEPA"}})
    settings = {"merge": True, "minibatch": 4}
    ours, theirs = (go({"algorithm": {"name": name, **settings}}) for name in ("gepa", "other"))
    assert ours.to_json() == theirs.to_json()
    assert ours.report.accepted > 0


def test_shipped_algorithms_import_public_names_only_and_nobody_knows_them_but_the_registry() -> None:
    modules = {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "flowevolve").rglob("*.py"))}
    imports = [
        (path, node) for path, tree in modules.items() for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    ]
    algorithms = ROOT / "flowevolve" / "algorithms"
    private = [
        f"{path}: {alias.name}"
        for path, node in imports
        if path.is_relative_to(algorithms)
        for alias in node.names
        if alias.name.startswith("_") or ("._" in (node.module or "") and not hasattr(fe, alias.name))
    ]
    assert private == []
    knowing = {
        path.relative_to(ROOT / "flowevolve").parts[0]
        for path, node in imports
        if not path.is_relative_to(algorithms) and (node.module or "").startswith("flowevolve.algorithms")
    }
    assert knowing <= {"compat"}


POLICY = """
class Mine:
    in_process = True
    interval_seconds = 5.0
    fair_every = 8
    needs_improvement = False

    def __init__(self, size: int = 1):
        if size > 9:
            raise ValueError("size must be less than ten")

    def _anything(self, *args, **kwargs):
        raise NotImplementedError

    decide = hopeless = group_key = request_key = first = choose = _anything
    apply = best = weights = standing = __getitem__ = chat = models = aclose = _anything
    candidates = confirmed = ()
    name = "mine"
    data = statement = None
    cases = ()
    worst = 0.0
    seed = rollout = judge = _anything
"""
REGISTRIES: list[Registry[object]] = [
    TASKS,
    PROBLEMS,
    STALENESS,
    ALLOCATION,
    RACING,
    ORDERINGS,
    ADMISSIONS,
    BANDITS,
    ARCHIVES,
    BACKENDS,
]


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_every_kind_of_plugin_is_found_listed_and_checked(registry: Registry[object], site: Site) -> None:
    site.put("brings_mine", POLICY, {registry.group: {"mine": "brings_mine:Mine"}})
    assert "mine" in registry.names()
    assert Listed("mine", "brings_mine 1.0") in registry.listing()
    assert type(registry.make("mine", {"size": 3}, "here")).__name__ == "Mine"
    assert type(registry.make("brings_mine:Mine", {}, "here")).__name__ == "Mine"
    for settings, says in (
        ({"sise": 3}, r"here\.sise: .* 'mine' has no such setting; did you mean 'size'"),
        ({"size": "big"}, r"here\.size is 'big', but has to be a whole number"),
        ({"size": 10}, r"here: .* 'mine' does not accept its settings: size must be less than ten"),
    ):
        with pytest.raises(InputError, match=says):
            registry.make("mine", settings, "here")


def test_a_plugin_that_refuses_its_settings_without_a_word_is_named_with_its_error(site: Site) -> None:
    code = POLICY.replace('ValueError("size must be less than ten")', "ValueError")
    assert code != POLICY
    site.put("silent", code, {STALENESS.group: {"mine": "silent:Mine"}})
    with pytest.raises(InputError, match=r"here: .* 'mine' does not accept its settings: ValueError$"):
        STALENESS.make("mine", {"size": 10}, "here")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_a_plugin_that_can_not_be_made_says_so_in_one_line(registry: Registry[object], site: Site) -> None:
    code = POLICY.replace('ValueError("size must be less than ten")', 'FileNotFoundError("rows.jsonl")')
    assert code != POLICY
    site.put("without_rows", code, {registry.group: {"mine": "without_rows:Mine"}})
    with pytest.raises(
        InputError, match=rf"here: {registry.kind} 'mine' can't be made: FileNotFoundError: rows\.jsonl"
    ):
        registry.make("mine", {"size": 10}, "here")


BROKEN: dict[str, tuple[str, str, str]] = {
    "missing module": ("import no_such_thing", "broken:Mine", r"ModuleNotFoundError: No module named 'no_such_thing'"),
    "error on import": ("raise RuntimeError('two\\nlines')", "broken:Mine", r"RuntimeError: two lines"),
    "exit on import": ("raise SystemExit(3)", "broken:Mine", r"SystemExit: 3"),
    "syntax error": ("def (", "broken:Mine", r"SyntaxError"),
    "no such attribute": ("", "broken:Mine", r"has no attribute 'Mine'"),
    "not a factory": ("Mine = 3", "broken:Mine", r"it is of type int, not a class or a function"),
    "a module": ("", "broken", r"it is of type module, not a class or a function"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_plugin_says_so_in_one_line_when_it_is_named_and_harms_no_other(fault: str, site: Site) -> None:
    code, target, says = BROKEN[fault]
    site.put("broken", code, {STALENESS.group: {"mine": target}})
    site.put("sound", POLICY, {STALENESS.group: {"other": "sound:Mine"}})
    with pytest.raises(
        InputError, match=rf"staleness: can't use staleness policy 'mine' of broken 1\.0: .*{says}"
    ) as raised:
        STALENESS.make("mine", {}, "staleness")
    assert "\n" not in str(raised.value)
    listed = {each.name: each for each in STALENESS.listing()}
    assert listed["mine"].problem is not None
    assert listed["other"].problem is None
    assert type(STALENESS.make("other", {}, "staleness")).__name__ == "Mine"
    assert type(STALENESS.make("guarded", {}, "staleness")).__name__ == "Guarded"


def test_what_lacks_a_method_is_no_policy(site: Site) -> None:
    site.put("brings_lame", "class Lame: pass\n", {RACING.group: {"lame": "brings_lame:Lame"}})
    with pytest.raises(
        InputError,
        match=r"racing: 'lame' makes something that is no racing policy, because it has no hopeless, needs_improvement",
    ):
        RACING.make("lame", {}, "racing")


def test_an_algorithm_is_a_subclass(site: Site) -> None:
    site.put("brings_odd", "class Odd: pass\n", {ALGORITHMS.group: {"odd": "brings_odd:Odd"}})
    with pytest.raises(
        InputError, match=r"algorithm\.name: .*not a subclass of flowevolve\.core\.algorithm\.Algorithm"
    ):
        go({"algorithm": {"name": "odd"}})


def test_an_algorithm_has_a_name(site: Site) -> None:
    code = "import flowevolve\nclass Odd(flowevolve.Algorithm): pass\n"
    site.put("brings_odd", code, {ALGORITHMS.group: {"odd": "brings_odd:Odd"}})
    with pytest.raises(InputError, match=r"algorithm\.name: 'odd' has no name; set name in class Odd"):
        go({"algorithm": {"name": "odd"}})


ODD: dict[str, tuple[str, str]] = {
    "constructor that fails": ("def __init__(self, *given): raise LookupError('no rows')", r"LookupError: no rows"),
    "graph that fails": ("def graph(self): raise LookupError('no stages')", r"LookupError: no stages"),
    "no graph": ("def graph(self): return None", r"graph\(\) returned a NoneType; return a flowevolve\.Graph"),
    "settings of no model": (
        "config_type = dict",
        r"config_type of class Odd is .*'dict'.*; give a class that is derived",
    ),
    "policy in place of its name": ("staleness = object()", r"its staleness is .*; give the name of a policy, such as"),
    "name that is no text": ("name = None", r"has no name; set name in class Odd"),
}


@pytest.mark.parametrize("fault", ODD)
def test_an_algorithm_that_can_not_be_used_says_so_in_one_line(fault: str, site: Site) -> None:
    member, says = ODD[fault]
    site.put(
        "brings_odd",
        f"from flowevolve.algorithms.baselines import BestOfN\nclass Odd(BestOfN):\n    name = 'odd'\n    {member}\n",
        {ALGORITHMS.group: {"odd": "brings_odd:Odd"}},
    )
    with pytest.raises(InputError, match=rf"algorithm\.name: .*{says}") as raised:
        go({"algorithm": {"name": "odd"}, "task": {"name": "program", "problem": "circle_packing_26"}})
    assert "\n" not in str(raised.value)


def test_a_name_that_ships_stays_with_what_ships(site: Site) -> None:
    site.put("brings_full", POLICY, {STALENESS.group: {"full": "brings_full:Mine"}})
    assert type(STALENESS.make("full", {}, "staleness")).__name__ == "Full"
    problems = [each.problem for each in STALENESS.listing() if each.name == "full"]
    assert problems == [None, "something that ships with flowevolve has this name; give 'brings_full:Mine' instead"]


def test_a_name_that_two_packages_bring_is_neithers(site: Site) -> None:
    for package in ("one", "two"):
        site.put(f"{package}_here", POLICY, {STALENESS.group: {"mine": f"{package}_here:Mine"}})
    with pytest.raises(InputError, match=r"several packages .*one_here 1\.0 \('one_here:Mine'\) and two_here 1\.0"):
        STALENESS.make("mine", {}, "staleness")
    assert all(each.problem for each in STALENESS.listing() if each.name == "mine")
    assert type(STALENESS.make("two_here:Mine", {}, "staleness")).__module__ == "two_here"


def test_settings_of_an_inherited_constructor_are_checked(site: Site) -> None:
    code = (
        "from flowevolve.policies.staleness import Guarded\nclass Looser(Guarded): pass\nclass Plain: decide = None\n"
    )
    points = {"looser": "brings_looser:Looser", "plain": "brings_looser:Plain"}
    site.put("brings_looser", code, {STALENESS.group: points})
    assert STALENESS.make("looser", {"max_gap": 7}, "staleness") is not None
    assert STALENESS.make("plain", {}, "staleness") is not None
    with pytest.raises(InputError, match=r"staleness\.gap: .* no such setting"):
        STALENESS.make("plain", {"gap": 7}, "staleness")


def test_types_that_are_unknown_at_run_time_are_named(site: Site) -> None:
    code = "from __future__ import annotations\nclass Mine:\n    def __init__(self, gap: Nowhere = 3): ...\n    decide = None\n"
    site.put("brings_typed", code, {STALENESS.group: {"mine": "brings_typed:Mine"}})
    with pytest.raises(
        InputError, match=r"can't be checked: name 'Nowhere' is not defined\. Import the types .* at run time"
    ):
        STALENESS.make("mine", {}, "staleness")


BACKEND = """
import anyio
from flowevolve.core.model import ChatReply

class Parrot:
    in_process = True

    def __init__(self, word: str, seconds: float = 1.0):
        self.word, self.seconds, self.made = word, seconds, 0

    async def chat(self, request, *, timeout):
        await anyio.sleep(self.seconds)
        self.made += 1
        return ChatReply(f"```\\n{self.word} {self.made}\\n```", model=request.model)

    async def models(self):
        return ("bird",)

    async def aclose(self):
        pass
"""


@pytest.fixture
def parrot(site: Site) -> Site:
    site.put("brings_parrot", BACKEND, {BACKENDS.group: {"parrot": "brings_parrot:Parrot"}})
    return site


def test_a_run_on_a_backend_of_a_plugin_and_its_replay(parrot: Site, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = go({"llm": {"backend": "parrot", "model": "bird", "settings": {"word": "hello"}}}, out)
    assert (result.backend, result.simulated) == ("parrot", False)
    assert result.report.error is None
    assert result.report.spent.proposals >= 6
    again = clock.run(replay, out, clock="virtual").result
    assert again.report.spent.proposals == result.report.spent.proposals


@pytest.mark.parametrize(
    ("llm", "says"),
    [
        ({"backend": "parot"}, r"llm\.backend: unknown backend 'parot'; did you mean 'parrot'\?"),
        ({"backend": "parrot"}, r"llm\.settings\.word is missing"),
        ({"backend": "parrot", "settings": {"wrod": "x"}}, r"llm\.settings\.wrod: .*did you mean 'word'"),
        (
            {"backend": "parrot", "settings": {"api_key": "sk-0123456789"}},
            r"llm\.settings: 'api_key' seems to be a key",
        ),
        ({"backend": "parrot", "settings": {"password": "0123456789"}}, r"llm\.settings: 'password' seems to be a key"),
        ({"backend": "sim", "settings": {"word": "x"}}, r"llm\.settings: backend 'sim' has no settings of its own"),
        ({"backend": "parrot", "base_url": "http://a/v1", "settings": {"word": "x"}}, r"belong in \[llm\.settings\]"),
    ],
)
def test_settings_of_a_backend_are_checked_before_anything_begins(
    parrot: Site, llm: Mapping[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says) as raised:
        go({"llm": {"model": "bird", **llm}})
    assert "0123456789" not in str(raised.value)


def test_the_virtual_clock_is_for_backends_that_say_they_are_in_this_process(site: Site) -> None:
    outside = BACKEND.replace("in_process = True", "pass")
    site.put("brings_parrot", outside, {BACKENDS.group: {"parrot": "brings_parrot:Parrot"}})
    llm = {"backend": "parrot", "model": "bird", "settings": {"word": "hello"}}
    with pytest.raises(InputError, match=r"clock 'virtual' needs a backend inside this process, and 'parrot'"):
        go({"llm": llm})
    config = parse_config({"llm": llm, "budget": {"proposals": 1}}, "test")
    assert clock.run(check, config, clock="real").name == "house_style"


def test_gepa_selects_from_the_archive_that_is_named(site: Site) -> None:
    code = """
    from flowevolve.archives.pareto import ParetoArchive

    class Recent(ParetoArchive):
        def __init__(self, size: int = 2):
            super().__init__()
            self.size = size

        def weights(self):
            return {candidate.id: 1 for candidate in self.candidates[-self.size:]}
    """
    site.put("brings_recent", code, {ARCHIVES.group: {"recent": "brings_recent:Recent"}})
    result = go({"algorithm": {"archive": {"name": "recent", "size": 1}}})
    assert result.report.error is None
    with pytest.raises(InputError, match=r"algorithm\.archive\.sice: archive 'recent' has no such setting"):
        go({"algorithm": {"archive": {"name": "recent", "sice": 1}}})


def test_the_reference_has_every_group_and_protocol() -> None:
    page = (ROOT / "docs" / "reference" / "plugins.md").read_text("utf-8")
    for registry in (ALGORITHMS, *REGISTRIES):
        assert f"| `{registry.group}` |" in page
        assert registry.contract is not None
        assert f".{registry.contract.__name__}`" in page


def flowevolve(*arguments: str, path: Path, code: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"{code}\nfrom flowevolve.cli.app import main; main()", *arguments]
    python_path = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": python_path, "COLUMNS": "200"}
    return subprocess.run(command, cwd=path, capture_output=True, text=True, timeout=120, env=environment, check=False)


def test_the_list_says_what_is_wrong(tmp_path: Path) -> None:
    put_package(tmp_path, "broken", "import no_such_thing", {ALGORITHMS.group: {"mine": "broken:Mine"}})
    done = flowevolve("list", "algorithms", path=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "gepa\n" in done.stdout
    assert "mine  (of broken 1.0)  can't be used: ModuleNotFoundError: No module named 'no_such_thing'" in done.stdout


LOOKED_FOR = """
import importlib.metadata, atexit
asked, original = [], importlib.metadata.entry_points
def entry_points(**kwargs):
    asked.append(kwargs.get("group"))
    return original(**kwargs)
importlib.metadata.entry_points = entry_points
atexit.register(lambda: print("asked for", asked))
"""


def test_no_plugin_is_looked_for_before_one_is_asked_for(tmp_path: Path) -> None:
    done = flowevolve("--help", path=tmp_path, code=LOOKED_FOR)
    assert done.returncode == 0, done.stderr
    assert "flowevolve." not in done.stdout.split("asked for")[1]
