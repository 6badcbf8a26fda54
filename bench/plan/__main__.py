"""The command ``python -m bench.plan [--tuning] [--quick] [--work FOLDER] [--json FILE]``."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import bench.plan
from bench._lib.command import argument_parser
from bench.plan.cases import TUNING, TWELVE
from bench.plan.comparing import amounts, compare


def main() -> None:
    parser = argument_parser(bench.plan)
    parser.add_argument("--tuning", action="store_true", help="the runs that the intervals were chosen on, instead")
    parser.add_argument("--quick", action="store_true", help="not the runs in real time, which take an hour")
    parser.add_argument("--work", type=Path, help="keep what was recorded here, and use what is here already")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    cases = [case for case in (TUNING if arguments.tuning else TWELVE) if not (arguments.quick and case.http)]
    with TemporaryDirectory() as folder:
        content = compare(cases, arguments.work or Path(folder))
    rows = content["cases"]
    assert isinstance(rows, list)
    for row in rows:
        print(f"{row['name']} (ended by {row['foretold']['ends']}, limited by {row['foretold']['limit']})")
        for name, estimate, taken, settled in amounts(row):
            inside = "settled" if settled else "inside" if estimate.low <= taken <= estimate.high else "OUTSIDE"
            said = f"{estimate.expected:.4g} ({estimate.low:.4g} to {estimate.high:.4g})"
            print(f"  {name}: foretold {said}, taken {taken:.4g}: {inside}, factor {estimate.factor:.2f}")
    print(f"{content['covered']} of {content['amounts']} inside; median factor {content['median_factor']:.2f}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
