"""Every figure of the page about benchmarks again.

``--tier full`` measures as the published results were, and writes over them: a day on two idle cores. ``--tier quick``
makes the short form of each bench, in a folder of its own: it shows that the figures can be made, and roughly which
they are, in less than two hours. What needs a server of yours is left out (`bench.gpu`, `bench.confirm`).
"""
