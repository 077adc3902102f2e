"""Many states and many motions of a solver: on vector lanes, and in threads."""
