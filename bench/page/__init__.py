"""What the live page costs a run that is watched in three browsers, and how smoothly one scrolls in it.

Time is real and so is the browser: Chromium without a screen. The model is a simulated server that takes the same time
for every call. Runs that nobody watches, runs with a page that nobody looks at, and runs watched in three browsers take
turns in an order drawn anew for each round; each has its calls counted by the server for the same seconds of its age.
"""
