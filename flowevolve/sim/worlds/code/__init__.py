"""The world `code`: a coder without understanding, which edits real programs."""
