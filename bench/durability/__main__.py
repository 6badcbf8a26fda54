"""The command.

python -m bench.durability [--quick] [--soak MINUTES] [--only PART] [--json FILE] [--charts FOLDER]
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import bench.durability
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench.durability.parts import PARTS


def main() -> None:
    parser = argument_parser(bench.durability)
    parser.add_argument("--quick", action="store_true", help="ten kills, some boundaries, a virtual hour")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="how long the run on the real clock lasts")
    parser.add_argument("--only", choices=list(PARTS), action="append", help="measure this part; may be repeated")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    parser.add_argument("--charts", type=Path, help="write the curves of the soaks into this folder")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work in this folder and leave all in it")
    arguments = parser.parse_args()
    parts = arguments.only or [name for name in PARTS if name != "real" or arguments.soak is not None]
    for name in parts:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            folder = Path(temporary) if arguments.keep is None else arguments.keep / name
            folder.mkdir(parents=True, exist_ok=True)
            figures = PARTS[name](arguments, folder)
        print(json.dumps(figures, indent=2))
        if arguments.json is not None:
            _add(arguments.json, figures)


def _add(file: Path, figures: Mapping[str, object]) -> None:
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    content = {**before, **figures, "simulated": True, **environment()}
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
