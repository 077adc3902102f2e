"""The back end ``"cython"``: C99 sources are compiled, cached, and loaded with a Cython module."""
