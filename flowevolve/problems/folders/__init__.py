"""Problems of other systems, as the folders that their users have: OpenEvolve's, ShinkaEvolve's and LEVI's, unchanged.

How to run them: docs/how-to/openevolve.md.
"""
