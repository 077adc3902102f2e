"""Code that leaves Python: standalone projects in C, and projects for other programs."""
