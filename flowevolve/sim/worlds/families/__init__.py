"""The world `families`: programs of known families, which small changes can't leave and larger moves can."""
