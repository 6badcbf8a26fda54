"""How well small benchmarks rank prompts: LEVI's selection beside two others, as in the paper's figure 6.

24 prompts answer 150 problems, each right or wrong, in a world with a few skills: prompts have them more or less, a
problem asks for one, and many problems hardly tell prompts apart. Some prompts are scored on all problems; from these a
method chooses a few problems, and predicts from them alone what the other prompts score on all. The figure is
Spearman's rank correlation of that with what they do score, the mean over random splits.
"""
