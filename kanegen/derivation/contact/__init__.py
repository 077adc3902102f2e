"""Rows of contacts and friction, and the inputs that the runtime fills."""
