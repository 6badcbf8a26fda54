"""How every form has a program judged: by the folder's `scoring`, with a line in a log before it and one after it.

The log is the file that the variable EVALUATION_LOG names; without it nothing is written. Times are those of the
machine's monotonic clock, so that they can be laid beside those of a server on it.
"""

import importlib.util
import json
import os
import threading
import time

import scoring


def judge(entry):
    """The score of a program's function and no error, or 0 and what went wrong."""
    _log(event="began")
    try:
        score, error = float(scoring.score(entry)), None
    except Exception as raised:
        score, error = 0.0, f"{type(raised).__name__}: {raised}"
    _log(event="ended", score=score, error=error)
    return score, error


def judge_file(path):
    """The same for the program in a file."""
    try:
        spec = importlib.util.spec_from_file_location("program", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        entry = getattr(module, scoring.ENTRY)
    except Exception as raised:
        _log(event="began")
        error = f"{type(raised).__name__}: {raised}"
        _log(event="ended", score=0.0, error=error)
        return 0.0, error
    return judge(entry)


def _log(**line):
    path = os.environ.get("EVALUATION_LOG")
    if path:
        text = json.dumps({"at": time.monotonic(), "worker": f"{os.getpid()}/{threading.get_ident()}", **line})
        with open(path, "a") as log:  # one write of one line, which processes do not tear apart
            log.write(text + "\n")
