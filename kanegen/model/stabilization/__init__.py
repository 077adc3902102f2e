"""Baumgarte's stabilization and projection."""
