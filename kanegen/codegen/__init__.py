"""C sources from a program, the description beside them, and standalone projects."""
