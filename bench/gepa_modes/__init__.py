"""GEPA as a stream beside GEPA in lockstep, on the virtual clock: proposals, time to score, and what repair saves.

Everything is simulated: the server is profile ``qwen3-8b-h100``, the model lives in world ``rules``. For each seed both
modes get the same task, seeds, prompts and minibatches; they differ in nothing but the executor and its width.
"""
