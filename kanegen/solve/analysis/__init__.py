"""Linear models of a motion."""
