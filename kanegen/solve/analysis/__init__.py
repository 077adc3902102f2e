"""Linear models, Jacobians and inverse dynamics."""
