"""Inputs that depend on the state: feedback laws, and runs under the control law of the model."""
