"""The code that runs inside a sandbox. It uses only the standard library, as the rest of the package is not in view."""
