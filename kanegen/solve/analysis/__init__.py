"""Linear models, equilibria and steady motions of a solver."""
