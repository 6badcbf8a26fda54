"""One configuration run on every row of EffiBench-X, as in CSE's table 1, and the means of ET, MP and MI over the rows.

The data set is not shipped; `--data` names its file. Each row has a run directory of its own in `--out`. A row that has
a result there is not run again, so the command goes on where it was interrupted. A run that ends with no program that
is right counts 0. What is measured suffers from whatever else runs on the machine: leave it to the command.
"""
