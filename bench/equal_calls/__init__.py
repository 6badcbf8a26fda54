"""gepa's own loop and ours over one gepa adapter at equal metric calls: score on rows held out, and seconds.

The adapters are of small worlds in which a prompt is a list of rules, some of them wrong, and useless notes. They sleep
for as long as a model would take, on the real clock. Ours is `flowevolve.compat.gepa.optimize` with its defaults and
``adapter_concurrency=8``; gepa makes one proposal at a time.
"""
