"""Checks of a model."""
