"""The version, alone in a module so that packaging tools can read it without importing kanegen."""

__version__ = "0.2.0"
