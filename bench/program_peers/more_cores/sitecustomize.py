"""On the path of ShinkaEvolve, which takes no more jobs than the machine has cores: it is told of 32."""

import os

os.cpu_count = lambda: 32
