"""Runs machine code on tests, with a shell script that runs it for one test after another.

The memory of the shell counts as the program's, but is small. Code and tests are packed into the script itself.
"""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Sequence

from flowevolve._util.json_types import JSON

COMMAND = ("sh",)
NAME = "tests.sh"
_SCRIPT = """\
mkdir run && cd run || exit 1
tail -n 1 "../{name}" | base64 -d | tar xz || exit 1
for number in {numbers}; do
    {tell}
    ./solution < "in$number" > "out$number"
    status=$?
    if [ $status -gt 128 ]; then echo "the program was ended by signal $((status - 128))" >&2; exit 1; fi
    if [ $status -ne 0 ]; then echo "the program exited with $status" >&2; exit 1; fi
done
for number in {numbers}; do echo; base64 -w 0 < "out$number"; done
exit 0
{archive}
"""


def script(code: str, inputs: Sequence[str], *, tell: bool) -> str:
    """The script for a program whose machine code is given as base64; with ``tell`` it prints a dot at each test."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        _add(archive, "solution", base64.b64decode(code), 0o755)
        for number, text in enumerate(inputs):
            _add(archive, f"in{number}", text.encode(), 0o644)
    return _SCRIPT.format(
        name=NAME,
        numbers=" ".join(map(str, range(len(inputs)))),
        tell="printf ." if tell else ":",
        archive=base64.b64encode(packed.getvalue()).decode(),
    )


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def of_the_script(samples: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Memory samples without the first ones, which are from our interpreter's fork before it becomes the shell."""
    for place in range(1, len(samples)):
        if samples[place][1] < samples[place - 1][1]:
            return samples[place:]
    return samples


def answers(stdout: str) -> JSON:
    """What the program printed for each test, up to the first line that can't be decoded: programs can tamper with
    them.
    """
    found: list[JSON] = []
    for line in stdout.split("\n")[1:]:
        try:
            found.append(base64.b64decode(line, validate=True).decode("utf-8", "replace"))
        except ValueError:
            break
    return found
