"""The feedback laws of inputs at a state: linearization of the closed loop, checks of limits."""
