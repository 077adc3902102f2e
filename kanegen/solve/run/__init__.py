"""One run: its options, what is integrated, and the solution."""
