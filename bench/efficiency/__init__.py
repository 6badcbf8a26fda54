"""How well CSE's memory-time integral repeats, and what the programs of the efficiency problems are worth.

For a quick and a slow program, judged again and again, it prints the mean integral and how much integral, time and
memory vary (standard deviation over mean), alone and while all other cores are kept busy. For each efficiency problem
it prints the figures of the seed program, the integral of the reference and the seconds that a judgement takes. It
takes a minute and a half on a machine that runs nothing else meanwhile, as it should.
"""
