"""Changes of generalized speeds."""
