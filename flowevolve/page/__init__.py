"""The page that shows a run: live with ``flowevolve watch``, and as one file with ``flowevolve report``."""
