"""Problems of other systems, read from their users' folders as they are: OpenEvolve's, ShinkaEvolve's and LEVI's.

How to run them: docs/how-to/openevolve.md.
"""
