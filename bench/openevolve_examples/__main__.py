"""The command ``python -m bench.openevolve_examples PATH [--out FILE]``."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import bench.openevolve_examples
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench.openevolve_examples.folders import EVALUATIONS, FolderResult, folders, load, run_folder, sources_of, table


def main() -> None:
    parser = argument_parser(bench.openevolve_examples)
    parser.add_argument("path", type=Path, nargs="?", help="an examples folder")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--only", help="folders with this in their name")
    parser.add_argument("--out", type=Path, help="write the figures here")
    parser.add_argument("--table", type=Path, help="print the table of these figures")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(load(arguments.table)))
        return
    if arguments.path is None:
        parser.error("give an examples folder")
    root = arguments.path.resolve()
    sources = sources_of(root)
    results: list[FolderResult] = []
    for folder in folders(root):
        if arguments.only and arguments.only not in str(folder):
            continue
        came = run_folder(root, folder, arguments.evaluations)
        results.append(replace(came, source=sources.get(came.folder, "")))
        print(results[-1].row(), flush=True)
    print(f"\n{table(results)}")
    if arguments.out:
        rows = [asdict(each) for each in results]
        figures = {"evaluations": arguments.evaluations, "folders": rows, **environment()}
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
