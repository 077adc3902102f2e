"""Animations: motions of a model as pages of HTML."""
