"""Runs LEVI on the folder: run.py SETTINGS, a file with the arguments of `evolve_code` in JSON.

``model`` holds the arguments of its `LM`, ``resume`` whether a run in ``output_dir`` is gone on with.
"""

import json
import sys
from pathlib import Path

import levi
import problem

if __name__ == "__main__":  # LEVI starts processes that import this module again
    settings = json.loads(Path(sys.argv[1]).read_text())
    snapshot = Path(settings["output_dir"], "snapshot.json")
    resumed = json.loads(snapshot.read_text()) if settings.pop("resume") and snapshot.exists() else None
    result = levi.evolve_code(
        problem.PROBLEM_DESCRIPTION,
        function_signature=problem.FUNCTION_SIGNATURE,
        seed_program=problem.SEED_PROGRAM,
        score_fn=problem.score_fn,
        model=levi.LM(**settings.pop("model")),
        resume_snapshot=resumed,
        **settings,
    )
    Path(settings["output_dir"], "best_program.py").write_text(result.best_program)
