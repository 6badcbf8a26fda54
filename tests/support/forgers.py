"""Programs that try to forge their score, and the folders of each kind whose evaluators they meet.

An honest program scores 3. One that has forged its score, or found the answer that the evaluator expects, has 999.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from flowevolve.problems.folders.catalog import folder_problem
from flowevolve.programs.evaluator import EvaluatorProblem, command_problem
from tests.support.folder_samples import write

HONEST, FORGED = 3.0, 999.0
SECRET = "the-answer-is-8417"
SEED = "def solve():\n    return 3\n"

_OPENEVOLVE = f"""
import importlib.util
ANSWER = {SECRET!r}
def score(value):
    return 999.0 if value == ANSWER else float(value)
def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return {{"combined_score": score(program.solve())}}
"""
_SHINKA = f"""
import sys
from shinka.core import run_shinka_eval
ANSWER = {SECRET!r}
def score(value):
    return 999.0 if value == ANSWER else float(value)
def aggregate(results):
    return {{"combined_score": score(results[0])}}
run_shinka_eval(sys.argv[2], sys.argv[4], "solve", 1, lambda number: {{}}, aggregate)
"""
_LEVI = f"""
PROBLEM_DESCRIPTION = "Return a number."
FUNCTION_SIGNATURE = "def solve():\\n    pass\\n"
SEED_PROGRAM = {SEED!r}
ANSWER = {SECRET!r}
def score(value):
    return 999.0 if value == ANSWER else float(value)
def score_fn(solve):
    return {{"score": score(solve())}}
"""
_COMMAND = f"""
import sys
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
import candidate_program
ANSWER = {SECRET!r}
def score(value):
    return 999.0 if value == ANSWER else float(value)
print(score(candidate_program.solve()))
"""
KINDS: Mapping[str, Mapping[str, str]] = {
    "openevolve": {"initial_program.py": SEED, "evaluator.py": _OPENEVOLVE, "answer.txt": SECRET},
    "shinka": {"initial.py": SEED, "evaluate.py": _SHINKA, "answer.txt": SECRET},
    "levi": {"problem.py": _LEVI, "answer.txt": SECRET},
    "command": {"seed.py": SEED, "score.py": _COMMAND, "answer.txt": SECRET},
}


def problem(kind: str, folder: Path) -> EvaluatorProblem:
    """The problem of a kind, whose files are written into a folder."""
    write(folder, KINDS[kind])
    if kind == "command":
        return command_problem(("python3", "score.py", "{program}"), folder / "seed.py")
    return folder_problem(folder)


_METRICS = '{"combined_score": 999, "score": 999}'
_REPORT = f'{{"metrics": {_METRICS}, "texts": {{}}, "failure": null}}'
_WRITE = f"""
import os
def forge():
    for descriptor in range(3, 21):
        try:
            os.write(descriptor, b'{_REPORT}')
        except OSError:
            pass
"""
_FILES = f"""
import glob, os, sys
def forge():
    folders = [part for part in sys.argv if os.path.isdir(part)]
    for place in ("/tmp", ".", "/run/readable/*"):
        folders += [path for path in glob.glob(place + "/*") + glob.glob(place) if os.path.isdir(path)]
    for folder in folders:
        for name, text in (("metrics.json", '{_METRICS}'), ("correct.json", '{{"correct": true}}'), ("answer.txt", "3")):
            try:
                with open(folder + "/" + name, "w") as file:
                    file.write(text)
            except OSError:
                pass
"""
_PATCHES = f"""
import json, types
METRICS = {_METRICS}
def wins(*arguments, **keywords):
    return dict(METRICS)
def thousand(*arguments, **keywords):
    return 999.0
NAMES = {{"score": thousand, "aggregate": wins, "evaluate": wins, "score_fn": wins, "_number": thousand}}
"""
FORGERS: Mapping[str, str] = {
    "writes to every descriptor and ends": _WRITE + "forge()\nos._exit(0)",
    "writes to every descriptor when called": _WRITE + "def solve():\n    forge()\n    os._exit(0)",
    "writes to every descriptor at the end": _WRITE + "import atexit\natexit.register(forge)\n" + SEED,
    "writes from a thread": _WRITE
    + "import threading, time\n"
    + "def again():\n    while True:\n        forge()\n        time.sleep(0.001)\n"
    + "threading.Thread(target=again, daemon=True).start()\n"
    + "def solve():\n    time.sleep(0.02)\n    return 3\n",
    "writes from a child": _WRITE
    + "import time\nif os.fork() == 0:\n    for _ in range(200):\n        forge()\n        time.sleep(0.001)\n    os._exit(0)\n"
    + SEED,
    "prints a score from a thread": f"""
import threading, time
def again():
    while True:
        print('{_METRICS}', flush=True)
        time.sleep(0.001)
threading.Thread(target=again, daemon=True).start()
def solve():
    time.sleep(0.02)
    return 3
""",
    "prints half a score": "def solve():\n    print(99, end='', flush=True)\n    return 3\n",
    "prints a score and ends": f"import os\nprint('{_METRICS}', flush=True)\nos._exit(0)",
    "prints a score at the end": f"import atexit\natexit.register(print, '{_METRICS}', flush=True)\n" + SEED,
    "writes the files of a result and ends": _FILES + "def solve():\n    forge()\n    os._exit(0)",
    "overwrites the files of a result": _FILES
    + "import time\nif os.fork() == 0:\n    for _ in range(50):\n        forge()\n        time.sleep(0.002)\n    os._exit(0)\n"
    + "def solve():\n    forge()\n    time.sleep(0.02)\n    return 3\n",
    "patches all modules": _PATCHES
    + """
import sys
for module in list(sys.modules.values()):
    for name, function in NAMES.items():
        if module.__name__ != __name__ and hasattr(module, name):
            setattr(module, name, function)
"""
    + SEED,
    "patches functions that it finds in memory": _PATCHES
    + """
import gc
for found in gc.get_objects():
    if isinstance(found, types.FunctionType) and found.__name__ in NAMES and found.__module__ != __name__:
        found.__code__ = (lambda *a, **k: 999.0 if len(a) and not callable(a[0]) else {"score": 999.0}).__code__
"""
    + SEED,
    "patches what its callers know": _PATCHES
    + """
import sys
def solve():
    frame = sys._getframe(1)
    while frame is not None:
        for name, function in NAMES.items():
            if name in frame.f_globals:
                frame.f_globals[name] = function
        frame = frame.f_back
    return 3
""",
    "patches builtins": """
import builtins, json
plain = json.dumps
builtins.float = lambda value=0: 999.0
json.dumps = lambda value, **keywords: plain({"metrics": {"combined_score": 999, "score": 999}, "texts": {}, "failure": None})
def solve():
    return 3
""",
    "returns an object that equals everything": """
class Right:
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __float__(self): return 999.0
def solve():
    return Right()
""",
    "is a number that is another": """
class Three(int):
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __float__(self): return 999.0
def solve():
    return Three(3)
""",
    "sends a pickle": """
import os, pickle
class Evil:
    def __reduce__(self):
        return (os.system, ("echo 999 > /tmp/got",))
def solve():
    os.write(5, pickle.dumps(Evil()))
    return 3
""",
    "answers before it is asked": """
import json, os, struct
def solve():
    for name in ("0", "1"):
        text = json.dumps({"dict": [["id", name], ["value", 999]]}).encode()
        os.write(5, struct.pack("!QII", 0x666C6F7765766F6C, len(text), 0) + text)
    return 3
""",
    "changes the environment": """
import os, sys
os.makedirs("/tmp/evil", exist_ok=True)
with open("/tmp/evil/sitecustomize.py", "w") as file:
    file.write("print(999)\\nimport os\\nos._exit(0)")
for name in ("PYTHONPATH", "PYTHONSTARTUP", "FLOWEVOLVE_PROGRAM"):
    os.environ[name] = "/tmp/evil"
"""
    + SEED,
    "writes into the memory of others": """
import os
for process in os.listdir("/proc"):
    if process.isdecimal() and int(process) != os.getpid():
        try:
            with open(f"/proc/{process}/mem", "r+b") as memory:
                for line in open(f"/proc/{process}/maps"):
                    if "rw" in line and "[heap]" in line:
                        start, end = (int(part, 16) for part in line.split()[0].split("-"))
                        memory.seek(start)
                        memory.write(b"9" * (end - start))
        except (OSError, ValueError):
            pass
"""
    + SEED,
    "kills others": """
import os, signal
for process in os.listdir("/proc"):
    if process.isdecimal() and int(process) != os.getpid():
        try:
            os.kill(int(process), signal.SIGKILL)
        except OSError:
            pass
"""
    + SEED,
    "searches for the answer": r"""
import gc, inspect, os, re, sys
WANTED = re.compile(rb"the-answer-is-\d+")
def places():
    for top in ("/tmp", "/run", "/dev/shm", "/home", "/root", "/work", os.getcwd(), *sys.argv):
        for folder, inner, files in os.walk(top):
            inner[:] = [name for name in inner if name != "packages" and os.path.join(folder, name) != sys.base_prefix]
            yield from (os.path.join(folder, name) for name in files)
    for process in filter(str.isdecimal, os.listdir("/proc")):
        yield from (f"/proc/{process}/{name}" for name in ("environ", "cmdline", "maps", "cwd/answer.txt", "root/answer.txt"))
        try:
            yield from (f"/proc/{process}/fd/{name}" for name in os.listdir(f"/proc/{process}/fd"))
        except OSError:
            pass
def found():
    for frame in inspect.stack(0):
        yield repr(frame.frame.f_globals).encode() + repr(frame.frame.f_locals).encode()
    for each in gc.get_objects():
        if type(each) is dict and "__name__" in each and each is not globals():
            yield from (text.encode("utf-8", "replace") for text in list(each.values()) if type(text) is str)
    for path in places():
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                yield os.read(descriptor, 2**20)
            finally:
                os.close(descriptor)
        except OSError:
            pass
def solve():
    for text in found():
        match = WANTED.search(text)
        if match:
            return match[0].decode()
    return 3
""",
}
"""Programs by what they do."""


def source(name: str) -> str:
    return textwrap.dedent(FORGERS[name])
