"""The code that runs inside a sandbox. It uses only the standard library, because the rest of the package is not
visible.
"""
