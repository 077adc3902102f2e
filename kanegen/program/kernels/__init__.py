"""The runtime kernels that programs call, with their Python twins."""
