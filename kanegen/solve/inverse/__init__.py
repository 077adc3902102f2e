"""Inverse dynamics: the path, its completion by the constraints, and the forces that drive the motion."""

from kanegen.solve.inverse.dynamics import InverseDynamics, inverse_dynamics

__all__ = ["InverseDynamics", "inverse_dynamics"]
