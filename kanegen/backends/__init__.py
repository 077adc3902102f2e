"""Back ends, which evaluate the program of a model: one module or folder for each."""
