"""Frames, points and the system over the graph."""
