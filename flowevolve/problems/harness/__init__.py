"""What asks a program again and again, one module each.

The text of a module is put behind a program's in the sandbox, and the module itself checks outside what came of it.
So they have no ``__future__`` imports, and their names start with ``harness_``, to be in no program's way. The one that
runs scripts (`streams`) is given them as text instead.
"""
