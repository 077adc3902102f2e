"""Servo-constraints, control constraints and underactuation."""
