"""Derivatives of whole motions with respect to parameters, start values and inputs."""
