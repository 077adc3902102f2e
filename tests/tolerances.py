"""Every tolerance of the tests, each with its reason. Relative to the size of what is compared."""

# --- the independent oracle and the examples ---------------------------------------------------------------

# The oracle works with 80 digits and rounds once to float64; a closed form in
# float64 loses a few more digits.
ORACLE_CLOSED_FORM = 1e-13

# Straight-line float64 evaluation of Q, L, F, J, b, ...: a few hundred operations with mild cancellation.
EVALUATION = 1e-11

# Quantities behind a linear solve: evaluation error times the condition number, at most some 1e3 away from
# rank loss (the random states are rejected beyond that).
SOLVE = 1e-8
CONDITION = 1e4

# A start computed from closed-form constraint equations satisfies them to rounding.
CONSISTENT_START = 1e-12
