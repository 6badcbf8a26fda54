"""Two coefficients, for the Hermite polynomials of degree 0 and 4."""

# EVOLVE-BLOCK-START
FIRST = 1.0
SECOND = 0.0


def coefficients() -> list[float]:
    return [FIRST, SECOND]


# EVOLVE-BLOCK-END
