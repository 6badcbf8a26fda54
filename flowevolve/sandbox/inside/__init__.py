"""What runs inside a sandbox. Standard library only: the rest of the package is not in view there."""
