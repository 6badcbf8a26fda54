"""Which example folders of other systems run unchanged.

PATH is the ``examples`` folder of a checkout of OpenEvolve, ShinkaEvolve or LEVI. Every folder below it that one of
them could run is given to ``flowevolve run`` as it is, with the simulated coder (world ``code``) for an LLM and for a
few evaluations. PATH may have a ``sources.json``, ``{folder: "where it is from"}``, for the table. Prints the tables of
docs/how-to/openevolve.md; ``--table FILE`` prints one from figures of before.
"""
