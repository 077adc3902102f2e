"""The frames and points that a model reaches."""
