"""Programs: what is computed, as straight-line code and calls of runtime kernels."""
