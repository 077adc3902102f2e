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

# A momentum's central difference over h = 1e-5 s: truncation h^2 / 6 times a third derivative of some 100.
MOMENTUM_RATE = 1e-8

# A start computed from closed-form constraint equations satisfies them to rounding.
CONSISTENT_START = 1e-12

# Forms of the equations against each other: rounding times condition numbers up to some 1e4; 5e-14 was seen.
FORMS_AGREE = 1e-10

# --- the C runtime: linear algebra and steppers -------------------------------------------------------------

# Observed order of convergence from three halvings: the next term of the error still contributes some tenths.
CONVERGENCE_ORDER = 0.35

# The same sums in another order, or interpolation evaluated at the end of its interval: a few roundings.
STEPPER_ROUNDING = 1e-13

# Global error over tolerance on a problem with a Lipschitz constant near 1 over a few seconds, and its spread
# over six decades of tolerance: error per step is controlled, so the ratio varies slowly.
TOLERANCE_PROPORTIONALITY = 50.0

# Evaluations against SciPy's implementation of the same pair: the step controls differ in damping and in the
# limits of growth, which shifts a few steps.
ADAPTIVE_PEER_EVALUATIONS = 1.15

# Errors of a solve with up to 8 unknowns, condition number at most 10 apart from units.
LINEAR_SOLVE = 1e-12

# The constrained solve passes through J_D and A2 Q A2^T, condition numbers up to some 1e3 together.
CONSTRAINED_SOLVE = 1e-10

# Times of events of guards whose state is integrated without error: rounding of t, and of the guard over its slope.
EVENT_ROUNDING = 1e-12

# Roots 3e-4 apart of a polynomial of degree 8 are known to rounding times its condition.
EVENT_OF_CLOSE_ROOTS = 1e-6

# Accuracy that an integration with a coarse step or the default tolerance of the tests keeps, and one with
# tolerances of 1e-8 to 1e-10.
COARSE_INTEGRATION = 1e-4
FINE_INTEGRATION = 1e-6

# float32 rounds to 6e-8; a few hundred steps add up some of it.
SINGLE_PRECISION = 1e-5

# --- the expression graph ------------------------------------------------------------------------------------

# 50 digits against 50 digits through at most some dozens of operations, with conditioning below 1e6.
GRAPH_EXACT = 1e-40

# The same where a constant was folded in float64 (sin(1) has no exact value), or float64 against 50 digits.
GRAPH_FOLDED = 1e-7

# Expressions whose float64 value is further than this from the 50-digit one are ill-conditioned: not compared.
GRAPH_ILL_CONDITIONED = 1e-10

# --- programs and generated C ---------------------------------------------------------------------------------

# Random expressions bounded by 20: each of some 60 nested operations amplifies rounding by at most some 20.
RANDOM_PROGRAM = 1e-9

# The same expressions in double and in 50 digits, well conditioned: some tens of roundings.
COMPILED_PROGRAM = 1e-12

# Units in the last place by which kg_sincos may be wrong: 0.85 is the largest error found in 8e6 angles.
SINCOS_ULPS = 0.9

# The same for kg_tan, a quotient of the two: 2.21 is the largest error of all floats.
TANGENT_ULPS = 2.3

# --- Jacobians and linearization ---------------------------------------------------------------------------------

# Central differences in float64 with a step of 1e-6: rounding 1e-16 / 1e-6 times the size of the terms.
DIFFERENCES = 1e-7

# Published eigenvalues have 14 decimals; those of a nonsymmetric matrix of size 10 lose two more.
PUBLISHED_EIGENVALUES = 1e-11

# --- consistent states -----------------------------------------------------------------------------------------

# Projected and assembled states satisfy their constraints to 1e-13 of the largest coordinate or speed; what is
# compared may be several times larger than that.
PROJECTED = 1e-12

# Error of a stiff run as a multiple of its tolerance: the errors of thousands of steps add up to less.
STIFF_PROPORTIONALITY = 5.0

# Solutions of random systems of up to 7 unknowns (condition below 1e3), factored with pivoting.
ROSENBROCK_FACTORS = 1e-12

# --- contacts -----------------------------------------------------------------------------------------------------

# Speeds of 1e4 m/s after a blow: rounding of the impulse of 1e6 N s times a condition number near 10.
BLOW = 1e-9

# Times of switches against exact ones, and the states there: runs with tolerances of 1e-11 over tens of seconds.
SWITCH_TIME = 1e-8
SWITCH_STATE = 1e-8

# Contact forces at a state: a solve with the mass matrix and one with the contact's response, both well conditioned.
CONTACT_FORCE = 1e-10

# The obstructed pendulum's switches: its fast law (300 1/s) makes steps short and errors small, twelve switches add up.
PENDULUM_SWITCH = 1e-9

# Energy (J) lost in an impact of some J: the speed at the impact has the error of a short run.
ENERGY_OF_IMPACT = 1e-10

# Impacts of a ball between flights whose integration is exact: the rounding of tens of flights.
BOUNCE_TIME = 1e-11

# Forces of few contacts in given modes against closed forms: one small solve.
CONTACT_SOLVE = 1e-12

# Conditions of Signorini and Coulomb with random contacts, and u' of Gauss's principle: inequalities are judged to
# 1e-10 of the largest row, times condition numbers up to some 1e2.
CONTACT_CONDITIONS = 1e-8

# --- servo-constraints ---------------------------------------------------------------------------------------------

# Second derivatives of servo-constraints under the controls found, values of some 10, behind two solves whose condition
# is below 1e3; 1e-14 was seen.
SERVO_LAW = 1e-10

# --- models read from SymPy ----------------------------------------------------------------------------------------

# Residuals of SymPy's own equations relative to their terms: rounding of a few thousand operations; the random states
# are away from singular mass matrices. 4e-15 was seen.
SAME_EQUATIONS = 1e-9

# --- operation counts ----------------------------------------------------------------------------------------------

# Formulas of operation counts as factors of what the C code does: of solves they leave out a few comparisons, which
# matter for three unknowns; iterations take as many sweeps as the numbers need, and the count is that of about five.
OPERATIONS_OF_SOLVES = 1.3
OPERATIONS_OF_ITERATIONS = 2.5

# Vector lanes against the functions at one state: fused products, and sines within an ulp, times the condition of the
# solve; 4e-14 was seen in the general form of the slider crank, 1e-15 elsewhere.
LANES = 1e-12
