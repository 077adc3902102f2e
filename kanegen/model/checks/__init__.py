"""Checks of a model: each returns its problems, one sentence for each."""
