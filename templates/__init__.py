"""Jinja templates and C runtime headers of the generated code (package data of kanegen)."""
