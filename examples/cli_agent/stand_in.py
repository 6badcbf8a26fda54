"""Stands in for a coding agent: takes the best harness there is and has it show one example more."""

import re
from pathlib import Path

scores = re.findall(r"^(\S+): accuracy ([0-9.]+)", Path("summary.txt").read_text(), re.MULTILINE)
named = [(float(score), Path("harnesses", f"{name}.py").read_text()) for name, score in scores]
shown = [(score, text) for score, text in named if "SHOWN = " in text]
source = max(shown)[1]
Path("new", "one_more.py").write_text(re.sub(r"SHOWN = (\d+)", lambda found: f"SHOWN = {int(found[1]) + 1}", source))
print("wrote one_more.py")
