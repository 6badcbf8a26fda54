"""Evaluations a second with all cores busy while LLM calls stream.

(1+λ) runs on the real clock with a simulated server, on a problem whose programs burn a known time of a core. The
cores' limit is measured before and after it: one plain process per core that calls the same function back to back. The
rate of plain Python processes, a new one for each program, is measured too (``start_each``): it says how much of what
is missing any way of keeping programs apart would cost. The bench needs an idle machine, and prints a line of JSON for
each length of programs.
"""
