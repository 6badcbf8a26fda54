"""The evaluator of an OpenEvolve folder, which SkyDiscover and flowevolve read, too."""

from judging import judge_file


def evaluate(program_path):
    score, error = judge_file(program_path)
    return {"combined_score": score} if error is None else {"combined_score": score, "error": error}
