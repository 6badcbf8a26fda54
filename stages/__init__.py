"""Stages that algorithms are put together from."""

if __name__ != "flowevolve.stages":
    raise ImportError("import this package as flowevolve.stages")
