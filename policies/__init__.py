"""Policies: small pure classes that make decisions. Raw facts go in, decisions come out; nothing here does any work."""

if __name__ != "flowevolve.policies":
    raise ImportError("import this package as flowevolve.policies")
