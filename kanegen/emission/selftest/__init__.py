"""The self-test of emitted C code: values computed at generation with 50 digits, and their tolerances."""
