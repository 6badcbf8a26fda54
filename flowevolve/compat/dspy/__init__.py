"""dspy's `GEPA` teleprompter, run as a stream: the same constructor and `compile`, dspy's own results.

dspy is an optional extra. From dspy.GEPA to the stream: docs/how-to/dspy.md.
"""

from importlib.util import find_spec

from flowevolve._util.errors import InputError

if find_spec("dspy") is None:
    raise InputError("flowevolve.compat.dspy needs dspy, which is not installed; pip install 'flowevolve[dspy]'")

from flowevolve.compat.dspy.teleprompter import GEPA as GEPA
