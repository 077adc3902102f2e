"""Generalized forces, energies and reactions."""
