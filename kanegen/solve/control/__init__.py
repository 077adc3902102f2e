"""Controls at a state and in a closed loop."""
