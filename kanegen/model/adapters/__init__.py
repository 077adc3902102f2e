"""Models read from SymPy's own classes."""
