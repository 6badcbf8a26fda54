"""The evaluator of a ShinkaEvolve folder. It writes the two files itself, as importing shinka would take seconds."""

import argparse
import json
from pathlib import Path

from judging import judge_file

parser = argparse.ArgumentParser()
parser.add_argument("--program_path", required=True)
parser.add_argument("--results_dir", required=True)
given = parser.parse_args()
score, error = judge_file(given.program_path)
results = Path(given.results_dir)
results.mkdir(parents=True, exist_ok=True)
metrics = {"combined_score": score, "public": {}, "private": {}}
(results / "metrics.json").write_text(json.dumps(metrics))
(results / "correct.json").write_text(json.dumps({"correct": error is None, "error": error}))
