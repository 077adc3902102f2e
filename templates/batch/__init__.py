"""The C headers of batch evaluation."""
