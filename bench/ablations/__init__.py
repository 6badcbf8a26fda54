"""What staleness policies, worker allocation, speculation and the scheduler each do, on the virtual clock.

Everything is simulated: the server is a profile, the model lives in world ``rules``, preset ``noisy``, and every run
lasts 30 virtual minutes. The tables stand beside what the paper, FlashEvolve, reports for the same question on a real
H100.
"""
