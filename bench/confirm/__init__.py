"""The claims that no capable model has confirmed, put to a model of yours: the defaults against gepa's own loop.

Both methods get the same rows, seed prompt, model, sampling settings, requests in flight and metric calls. Their calls
go through one gate on this machine, which counts what is paid for by the usage that the endpoint reports, and sends
nothing that could take the sum over the cap. Rows held out, which no method sees, are scored afterwards, in the same
way for both and from the same cap. The claims and the rule for their verdicts stand in `bench.confirm.claims`.

What was paid for is kept in ``--out``. The same command goes on with it, after Ctrl-C or with a higher cap.
"""
