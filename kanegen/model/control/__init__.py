"""The control law of a model."""
