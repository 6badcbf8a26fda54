"""What runs in the sandbox beside a program: its evaluator. It imports the standard library alone."""
