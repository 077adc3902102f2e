"""Bodies, inertia and the kinetic-energy matrix."""
