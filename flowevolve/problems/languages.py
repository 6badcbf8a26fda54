"""The languages that programs for efficiency problems can be written in, and how these programs are run."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.errors import InputError
from flowevolve.problems.drivers import build_cpp, streams
from flowevolve.sandbox.isolation import ENVIRONMENT

LanguageName = Literal["python", "cpp"]


@dataclass(frozen=True, slots=True)
class Language:
    name: LanguageName
    key: str
    """Its name in EffiBench-X."""
    file: str
    """The component of a program that is run."""
    driver: str
    """The source of the function that runs programs or, if they have to be built, of the one that builds them."""
    built: bool
    """Whether a program is built before it is run."""
    rules: str
    """What a program is and may use, for problem statements."""
    header: str
    """The header that EffiBench-X puts above programs of type ``functional``, in our own version."""
    frame: str
    """A program that reads a test and prints an empty answer; evolution starts from it if no other program is given."""


PYTHON = Language(
    name="python",
    key="python3",
    file="program.py",
    driver=inspect.getsource(streams),
    built=False,
    rules="The program is one Python file, run as a script{times}. It may use the standard library and numpy, nothing "
    "else; it has no network.",
    header="""\
import bisect, collections, functools, heapq, itertools, math, random, re, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from typing import *
""",
    frame='''\
import sys


def read_input() -> list[str]:
    """The lines of the test."""
    return sys.stdin.read().splitlines()


def solve(lines: list[str]) -> str:
    """The answer."""
    return ""


def main() -> None:
    print(solve(read_input()))


if __name__ == "__main__":
    main()
''',
)
CPP = Language(
    name="cpp",
    key="cpp",
    file="program.cpp",
    driver=inspect.getsource(build_cpp),
    built=True,
    rules="The program is one C++ file, built by g++ with -O2 -std=c++17 and run{times}. It may use the standard "
    "library, nothing else; it has no network.",
    header="#include <bits/stdc++.h>\nusing namespace std;\n",
    frame="""\
#include <bits/stdc++.h>
using namespace std;

string solve(const string& test) {
    return "";
}

int main() {
    string test((istreambuf_iterator<char>(cin)), istreambuf_iterator<char>());
    cout << solve(test) << endl;
}
""",
)
LANGUAGES: Mapping[LanguageName, Language] = {"python": PYTHON, "cpp": CPP}


def usable(name: LanguageName) -> Language:
    """The language of this name.

    Raises:
        InputError: if programs in it can't be built here.
    """
    if name == "cpp" and shutil.which("g++", path=ENVIRONMENT["PATH"]) is None:
        raise InputError(
            "task.language: programs in C++ are built by g++, which is not on this machine (in /usr); install it "
            '(Debian, Ubuntu: apt-get install g++), or set language = "python"'
        )
    return LANGUAGES[name]
