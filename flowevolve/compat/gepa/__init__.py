"""gepa's `optimize`, run as a stream: the same arguments, any `GEPAAdapter`, gepa's own result.

`installed` replaces gepa's own function by it for a while, for libraries that call gepa.

gepa is an optional extra. From gepa to the stream: docs/how-to/gepa.md.
"""

from importlib.util import find_spec

from flowevolve._util.errors import InputError

if find_spec("gepa") is None:
    raise InputError("flowevolve.compat.gepa needs gepa, which is not installed; pip install 'flowevolve[gepa]'")

from flowevolve.compat.gepa.api import optimize as optimize
from flowevolve.compat.gepa.installed import installed as installed
