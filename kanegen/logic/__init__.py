"""Discrete behavior of models: named modes with transitions."""
