"""Meta-Harness as a stream beside its synchronous form, on the virtual clock (FlashEvolve, figure 7 c and d).

Both run the same simulated coder and model (profile ``qwen3-8b-h100``, world ``harness``) for the same virtual time;
the harnesses themselves really run, in the sandbox. Their own time does not count, because it holds the virtual clock.
Both may have 256 requests in flight, so that the synchronous form, too, asks for all texts of a step side by side.
"""
