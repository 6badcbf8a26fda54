"""What the readers make of recorded replies: read, refused by reason, and where the child is known, whether it is that.

    python tools/measure_readers.py REPLIES.jsonl[.gz] [--by model]

Rows have `kind`, `reply`, and where known `parent`, `child`, `language`, `model` and a `note` (of a child that upstream
made of a part of the reply alone).
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path

from flowevolve.prompts.reading.kinds import KINDS, Recorded, outcome

KIND_OF = {"whole_program": "program", "json_ops": "json", "other": "answer", **{kind: kind for kind in KINDS}}


def measured(row: dict) -> list[str]:
    """What to count for a row."""
    done = json.loads(outcome(KIND_OF[row["kind"]], Recorded(row["reply"], row.get("parent"), row.get("language"))))
    found = ["read" if done["ok"] else f"refused: {done['reason'].partition(':')[0]}"]
    if row.get("child") is not None and not row.get("note"):
        found.append(f"child: {_compared(done['result'], row['child'])}")
    return found


def _compared(result: str | None, child: str) -> str:
    if result is None:
        return "refused"
    if result.strip() == child.strip():
        return "same"
    plain = ["\n".join(line.rstrip() for line in text.split("\n") if line.strip()) for text in (result, child)]
    return "same but for space" if plain[0] == plain[1] else "other"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--by", choices=["model"], help="count apart by this as well")
    options = parser.parse_args()
    opened = gzip.open if options.file.suffix == ".gz" else open
    counts: dict[str, Counter[str]] = {}
    with opened(options.file, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            name = row["kind"] if options.by is None else f"{row['kind']}, {row.get(options.by) or 'unknown'}"
            counts.setdefault(name, Counter()).update(["rows", *measured(row)])
    for name, found in sorted(counts.items()):
        print(f"{name}: {', '.join(f'{what} {count}' for what, count in sorted(found.items()))}")


if __name__ == "__main__":
    main()
