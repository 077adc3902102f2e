"""Constraints at acceleration level."""
