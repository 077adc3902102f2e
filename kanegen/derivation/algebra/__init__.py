"""Linear algebra in straight-line code over the graph."""
