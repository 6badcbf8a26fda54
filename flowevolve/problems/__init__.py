"""The problems that ship with the package. Their seeds, cases and checkers are our own."""
