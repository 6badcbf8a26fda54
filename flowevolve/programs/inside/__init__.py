"""What runs in the sandbox beside a program: its evaluator. It imports only the standard library."""
