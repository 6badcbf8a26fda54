"""The problems that ship: what programs are to solve, with seeds, cases and checkers of our own."""
