"""What asks a program's function again and again, one module each.

The text of a module is put behind a program's in the sandbox, and the module itself checks outside what came of it.
So they have no ``__future__`` imports, and their names start with ``harness_``, to be in no program's way.
"""
