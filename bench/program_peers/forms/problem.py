"""The problem of a LEVI folder."""

from pathlib import Path

import scoring
from judging import judge

PROBLEM_DESCRIPTION = scoring.__doc__
FUNCTION_SIGNATURE = scoring.SIGNATURE
SEED_PROGRAM = Path(__file__).with_name("initial_program.py").read_text()


def score_fn(entry):
    score, error = judge(entry)
    return {"score": score} if error is None else {"score": score, "error": error}
