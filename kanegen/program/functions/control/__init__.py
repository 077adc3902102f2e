"""Functions of servo-constraints, control constraints and inverse dynamics."""
