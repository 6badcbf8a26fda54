"""ACE as a stream beside ACE in lockstep, on the virtual clock: the best validation score over half an hour.

The shape of FlashEvolve's figure 7 (a, b). Everything is simulated: the server is profile ``qwen3-8b-h100``, the model
lives in world ``rules``. For each seed both modes get the same task, seed, prompts and order of samples.
"""
