"""The kernels of kanegen in JAX: functions of arrays that can be compiled, mapped and differentiated.

Each ``kg_NAME`` of the runtime has the arguments of the C function, without results and work space, and returns whether
it succeeded, then its results. Ranks and pivots are decided by the tolerances of the C code; a decision has no
derivative. A module contains the definitions that it needs; they use only what this file imports, and each other.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

# -- values and choices ------------------------------------------------------------------------------------------------


def kg_tolerance(double, single):
    """A tolerance against rounding: that of the precision in which JAX computes."""
    return double if jax.config.jax_enable_x64 else single


def kg_vector(values):
    """The array of scalars or of a vector, in the default precision."""
    if isinstance(values, list | tuple):
        return jnp.stack([jnp.asarray(x, dtype=float) for x in values]) if len(values) else jnp.zeros(0)
    return jnp.asarray(values, dtype=float)


def kg_matrix(rows, columns, values):
    """The matrix of row-major scalars."""
    return kg_vector(values).reshape(rows, columns)


def kg_scalars(x):
    """The elements of a vector."""
    return [part.reshape(()) for part in lax.split(x, [1] * x.shape[0])] if x.shape[0] else []


def kg_sincos(*angles):
    """Sines and cosines."""
    return [jnp.sin(x) for x in angles], [jnp.cos(x) for x in angles]


def kg_only_where(condition, *values):
    """The same values, with derivatives where the condition holds only.

    Derivatives of a branch that is not chosen are zero, but 0 times an infinite slope in it would be NaN.
    """

    def masked(x):
        return jnp.where(condition, x, lax.stop_gradient(x))

    return jax.tree_util.tree_map(masked, values)


def kg_choice(other):
    """The function (holds, result, arguments) -> result, or that of ``other`` where the condition does not hold.

    Under vmap, other is computed if one of the rows needs it, and with derivatives in any case.
    """

    def choose(holds, result, arguments):
        def evaluate(arguments):
            value, valid = other(*kg_only_where(jnp.logical_not(holds), *arguments))
            return value, jnp.asarray(valid)

        return lax.cond(holds, lambda _: result, evaluate, arguments)

    choose_in_batch = jax.custom_batching.custom_vmap(choose)

    @choose_in_batch.def_vmap
    def in_batch(_, batched, *given):
        axes = jax.tree_util.tree_map(lambda is_batched: 0 if is_batched else None, tuple(batched))
        rows = [jax.vmap(function, in_axes=axes) for function in (lambda holds, result, arguments: result, choose)]
        found = lax.cond(jnp.all(given[0]), *rows, *given)
        return found, jax.tree_util.tree_map(lambda _: True, found)

    @jax.custom_jvp
    def choice(holds, result, arguments):
        return choose_in_batch(holds, result, arguments)

    choice.defjvp(lambda primals, tangents: jax.jvp(choose, primals, tangents))
    return choice


def kg_guarded(*others):
    """Makes a function give the values of others where its conditions do not hold: a decorator.

    The function returns its value, whether it is valid, and one condition for each of the others.
    """
    choices = [kg_choice(other) for other in others]

    def decorate(function):
        @functools.wraps(function)
        def guarded(*arguments):
            # The compiler finds that the function is evaluated twice at equal values, and does so once.
            _, _, conditions = function(*lax.stop_gradient(arguments))
            holds = conditions[0]
            for condition in conditions[1:]:
                holds = holds & condition
            value, valid, _ = function(*kg_only_where(holds, *arguments))
            result = value, jnp.asarray(valid)
            for condition, choice in list(zip(conditions, choices, strict=True))[::-1]:
                result = choice(condition, result, arguments)
            return result

        return guarded

    return decorate


def kg_min(x, y):
    """The smaller number, the second of equal ones."""
    return jnp.where(x < y, x, y)


def kg_max(x, y):
    """The larger number, the second of equal ones."""
    return jnp.where(x > y, x, y)


def kg_reciprocal(x):
    """1 / x, and 0 for 0."""
    return jnp.where(x != 0.0, 1.0 / jnp.where(x != 0.0, x, 1.0), 0.0)


def kg_gather(elements, index):
    """The element of a list at an index that was computed."""
    return jnp.stack(elements)[jnp.asarray(index, dtype=int)]


def kg_interval(breakpoints, x):
    """The index of the interval between breakpoints that contains x; the nearest one beyond."""
    knots = jnp.asarray(breakpoints, dtype=float)
    return jnp.clip(jnp.searchsorted(knots, x, side="right") - 1, 0, len(breakpoints) - 2)


def kg_spline(breakpoints, coefficients, x):
    """A piecewise polynomial; coefficients in ascending powers of the distance from the breakpoint before."""
    knots, pieces = jnp.asarray(breakpoints, dtype=float), jnp.asarray(coefficients, dtype=float)
    k = kg_interval(breakpoints, x)
    d, piece = x - knots[k], pieces[k]
    value = piece[-1]
    for j in range(len(coefficients[0]) - 2, -1, -1):
        value = value * d + piece[j]
    return value


def kg_weights(knots, k, x, order, cubic):
    """Weights of what is given at both ends of interval k in a derivative of an order: values, or values and slopes."""
    d, inverse = x - knots[k], 1.0 / (knots[k + 1] - knots[k])
    s = d * inverse
    if not cubic:
        return [1.0 - s, s] if order == 0 else [-inverse, inverse]
    rest = 1.0 - s
    if order == 0:
        end, slopes = s * s * (3.0 - 2.0 * s), (d * (rest * rest), -(d * (s * rest)))
        return [1.0 - end, slopes[0], end, slopes[1]]
    if order == 1:
        end, slopes = 6.0 * (s * rest) * inverse, (rest * (1.0 - 3.0 * s), s * (3.0 * s - 2.0))
    elif order == 2:
        end = (6.0 - 12.0 * s) * (inverse * inverse)
        slopes = ((6.0 * s - 4.0) * inverse, (6.0 * s - 2.0) * inverse)
    else:
        end, slopes = -12.0 * inverse**3, (6.0 * inverse**2,) * 2
    return [-end, slopes[0], end, slopes[1]]


def kg_grid(x_points, y_points, values, orders, x, y):
    """A function of two arguments, linear or cubic in each; values: those of kanegen's grids of tables."""
    cubic, given = len(values[0][0]) > 1, jnp.asarray(values, dtype=float)
    i, j = kg_interval(x_points, x), kg_interval(y_points, y)
    a = kg_weights(jnp.asarray(x_points, dtype=float), i, x, orders[0], cubic)
    b = kg_weights(jnp.asarray(y_points, dtype=float), j, y, orders[1], cubic)
    n = len(a) // 2
    return sum(
        along_x * along_y * given[i + k // n, j + m // n, 2 * (k % n) + m % n]
        for k, along_x in enumerate(a)
        for m, along_y in enumerate(b)
    )


# -- linear systems ----------------------------------------------------------------------------------------------------


def kg_rank_tolerance(n):
    """Pivots below this fraction of their scale count as zero."""
    return 64 * n * jnp.finfo(kg_vector([0.0]).dtype).eps


def kg_row_sizes(M):
    """The largest magnitude of each row, and whether all are positive and finite; 1 in place of those that are not."""
    sizes = jnp.max(jnp.abs(lax.stop_gradient(M)), axis=1, initial=0.0)
    usable = (sizes > 0.0) & jnp.isfinite(sizes)
    return jnp.where(usable, sizes, 1.0), jnp.all(usable)


def kg_general_solution(M, right):
    """Whether M (n, n) is regular, and the solution (n, m) for ``right``: scaled row pivoting."""
    n = M.shape[0]
    if n == 0:
        return jnp.asarray(True), right
    sizes, usable = kg_row_sizes(M)
    M, right = M / sizes[:, None], right / sizes[:, None]
    factors, _, order = lax.linalg.lu(lax.stop_gradient(M))

    def triangular(b, lower, transposed):
        return lax.linalg.triangular_solve(
            factors, b, left_side=True, lower=lower, unit_diagonal=lower, transpose_a=transposed
        )

    def solution(_, b):
        return triangular(triangular(b[order], True, False), False, False)

    def of_transposed(_, b):
        return triangular(triangular(b, False, True), True, True)[jnp.argsort(order)]

    magnitudes = jnp.abs(factors)
    above = jnp.max(jnp.triu(magnitudes, 1), axis=0)
    regular = usable & jnp.all(jnp.diagonal(magnitudes) > kg_rank_tolerance(n) * above)
    return regular, lax.custom_linear_solve(lambda x: M @ x, right, solution, of_transposed)


def kg_cholesky(Q):
    """Whether Q (n, n) is positive definite beyond rounding, and its Cholesky factor; the lower triangle is read."""
    n = Q.shape[0]
    if n == 0:
        return jnp.asarray(True), Q
    L = lax.linalg.cholesky(jnp.tril(Q) + jnp.tril(Q, -1).T, symmetrize_input=False)
    sizes, pivots = jnp.diagonal(Q), jnp.diagonal(L) ** 2
    return jnp.all((sizes > 0.0) & jnp.isfinite(sizes) & (pivots > kg_rank_tolerance(n) * sizes)), L


def kg_forward(L, b):
    """The solution of L x = b for a matrix b."""
    return lax.linalg.triangular_solve(L, b, left_side=True, lower=True) if L.shape[0] else b


def kg_backward(L, b):
    """The solution of L^T x = b for a matrix b."""
    return lax.linalg.triangular_solve(L, b, left_side=True, lower=True, transpose_a=True) if L.shape[0] else b


def kg_definite_solution(S, right):
    """Whether the symmetric S (n, n) is positive definite, and the solution (n, m) for ``right``."""
    S = jnp.tril(S) + jnp.tril(S, -1).T
    definite, L = kg_cholesky(lax.stop_gradient(S))

    def solution(_, b):
        return kg_backward(L, kg_forward(L, b))

    if S.shape[0] == 0:
        return definite, right
    return definite, lax.custom_linear_solve(lambda x: S @ x, right, solution, symmetric=True)


def kg_lu_solve(n, a, b):
    """Solve a x = b."""
    ok, x = kg_general_solution(kg_matrix(n, n, a), kg_matrix(n, 1, b))
    return ok, kg_scalars(x[:, 0])


def kg_lu_solve_many(n, m, a, b):
    """Solve a x = b for m right sides."""
    ok, x = kg_general_solution(kg_matrix(n, n, a), kg_matrix(n, m, b))
    return ok, kg_scalars(x.ravel())


def kg_cholesky_solve(n, a, b):
    """Solve a x = b for a symmetric positive definite."""
    ok, x = kg_definite_solution(kg_matrix(n, n, a), kg_matrix(n, 1, b))
    return ok, kg_scalars(x[:, 0])


def kg_cholesky_solve_many(n, m, a, b):
    """Solve a x = b for m right sides, a symmetric positive definite."""
    ok, x = kg_definite_solution(kg_matrix(n, n, a), kg_matrix(n, m, b))
    return ok, kg_scalars(x.ravel())


# -- constraints of full rank ------------------------------------------------------------------------------------------


def kg_pivots(J):
    """Whether the rows of J are independent, and the columns, pivots of a complete pivoting first, as indices."""
    m, n = J.shape
    if m > n:
        return jnp.asarray(False), jnp.arange(n), jnp.arange(n)[:0]
    sizes, ok = kg_row_sizes(J)
    rows = lax.stop_gradient(J) / sizes[:, None]
    free_rows, free_columns, chosen = jnp.ones(m, dtype=bool), jnp.ones(n, dtype=bool), []
    for _ in range(m):
        candidates = jnp.where(free_rows[:, None] & free_columns, jnp.abs(rows), -1.0)
        i, j = jnp.divmod(jnp.argmax(candidates), n)
        ok = ok & (candidates[i, j] > kg_rank_tolerance(n))
        pivot_row = rows[i] / jnp.where(rows[i, j] != 0.0, rows[i, j], 1.0)
        rows = jnp.where((jnp.arange(m) == i)[:, None], pivot_row, rows - rows[:, j][:, None] * pivot_row)
        free_rows, free_columns = free_rows.at[i].set(False), free_columns.at[j].set(False)
        chosen.append(j)
    dependent = jnp.stack(chosen) if m else jnp.arange(n)[:0]
    return ok, dependent, jnp.argsort(jnp.logical_not(free_columns), stable=True)[: n - m]


def kg_partition(n_u, n_c, J):
    """Dependent, then independent speeds, each in ascending order."""
    ok, dependent, independent = kg_pivots(kg_matrix(n_c, n_u, J))
    order = jnp.concatenate([jnp.sort(dependent), independent])[:n_u]
    return ok, kg_scalars(order.astype(kg_vector([0.0]).dtype))


def kg_multipliers(n_u, n_c, J, force):
    """Solve J^T lambda = force with the best-conditioned columns of J."""
    rows, force = kg_matrix(n_c, n_u, J), kg_vector(force)
    independent, dependent, _ = kg_pivots(rows)
    regular, x = kg_general_solution(rows[:, dependent[:n_c]].T, force[dependent[:n_c], None])
    return independent & regular, kg_scalars(x[:, 0])


def kg_constrained_solution(n_u, n_c, Q, P, J, b, solve):
    """Solve Q u' = P + J^T lambda, J u' = b with dependent speeds chosen by pivoting."""
    Q, P = kg_matrix(n_u, n_u, Q), kg_vector(P)
    J, b = kg_matrix(n_c, n_u, J), kg_vector(b)
    independent, D, I = kg_pivots(J)
    if n_c > n_u:
        return independent, kg_scalars(jnp.full(n_u, jnp.nan))
    _, solved = kg_general_solution(J[:, D], jnp.concatenate([J[:, I], b[:, None]], axis=1))
    order = jnp.concatenate([D, I])
    A2T = jnp.concatenate([-solved[:, :-1], jnp.eye(n_u - n_c)])
    particular = jnp.concatenate([solved[:, -1], jnp.zeros(n_u - n_c)])
    Q, P = Q[order][:, order], P[order]
    ok, x = solve(A2T.T @ Q @ A2T, (A2T.T @ (P - Q @ particular))[:, None])
    return independent & ok, kg_scalars((particular + A2T @ x[:, 0])[jnp.argsort(order)])


def kg_constrained_solve(n_u, n_c, Q, P, J, b):
    """kg_constrained_solution for a symmetric Q."""
    return kg_constrained_solution(n_u, n_c, Q, P, J, b, kg_definite_solution)


def kg_constrained_solve_lu(n_u, n_c, Q, P, J, b):
    """kg_constrained_solution for any Q."""
    return kg_constrained_solution(n_u, n_c, Q, P, J, b, kg_general_solution)


# -- constraints of any rank -------------------------------------------------------------------------------------------


def kg_orthogonal_rows(M):
    """U (m, m), orthogonal, for which the rows of U M are orthogonal: Jacobi rotations (Hestenes 1958).

    They find small singular values, and with them the rank, to high relative accuracy.
    """
    m, n = M.shape
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
    start = jnp.concatenate([lax.stop_gradient(M), jnp.eye(m)], axis=1)
    if not pairs:
        return start[:, n:]
    rounding, none = kg_tolerance(1e-16, 5e-8), kg_tolerance(1e-300, 1e-36)

    def rotate(rows, pair):
        a, b = rows[pair[0]], rows[pair[1]]
        aa, bb, ab = jnp.sum(a[:n] * a[:n]), jnp.sum(b[:n] * b[:n]), jnp.sum(a[:n] * b[:n])
        turns = (jnp.abs(ab) > rounding * jnp.sqrt(aa * bb)) & (ab * ab >= none)
        zeta = (bb - aa) / (2.0 * jnp.where(turns, ab, 1.0))
        tangent = jnp.where(zeta < 0.0, -1.0, 1.0) / (jnp.abs(zeta) + jnp.sqrt(1.0 + zeta * zeta))
        tangent = jnp.where(turns, tangent, 0.0)
        c = 1.0 / jnp.sqrt(1.0 + tangent * tangent)
        s = c * tangent
        return rows.at[pair[0]].set(c * a - s * b).at[pair[1]].set(s * a + c * b), turns

    def sweep(state):
        rows, _, count = state
        rows, turned = lax.scan(rotate, rows, jnp.array(pairs))
        return rows, jnp.any(turned), count + 1

    rows, _, _ = lax.while_loop(lambda state: state[1] & (state[2] < 30), sweep, (start, jnp.asarray(True), 0))
    return rows[:, n:]


@jax.custom_jvp
def kg_pseudoinverse(M, squares):
    """M^+ (n, m) and the rank of M (m, n); ``squares`` (m,): the squared sizes of its rows.

    A singular value counts as zero if it is small relative to the rows that it combines.
    """
    U = kg_orthogonal_rows(M)
    rows = U @ M
    values = jnp.sum(rows * rows, axis=1)
    used = values > kg_tolerance(1e-9, 1e-4) ** 2 * ((U * U) @ squares)
    weights = jnp.where(used, 1.0 / jnp.where(used, values, 1.0), 0.0)
    return (rows * weights[:, None]).T @ U, jnp.sum(jnp.where(used, 1.0, 0.0))


def kg_pseudoinverse_rule(primals, tangents):
    """The derivative at constant rank (Golub and Pereyra 1973)."""
    M, dM = primals[0], tangents[0]
    G, rank = kg_pseudoinverse(*primals)
    m, n = M.shape
    change = G @ G.T @ dM.T @ (jnp.eye(m) - M @ G) + (jnp.eye(n) - G @ M) @ dM.T @ G.T @ G - G @ dM @ G
    return (G, rank), (change, jnp.zeros_like(rank))


kg_pseudoinverse.defjvp(kg_pseudoinverse_rule)


def kg_squares(M):
    """The squared lengths of rows."""
    return jnp.sum(M * M, axis=1)


def kg_udwadia_kalaba(n_u, n_c, Q, P, J, b):
    """Solve Q u' = P + J^T lambda, J u' = b for constraints of any rank; multipliers of least norm, and the rank."""
    J, P = kg_matrix(n_c, n_u, J), kg_vector(P)
    ok, L = kg_cholesky(kg_matrix(n_u, n_u, Q))
    scaled, free = kg_forward(L, J.T).T, kg_forward(L, P[:, None])[:, 0]
    G, rank = kg_pseudoinverse(scaled, kg_squares(scaled))
    held = G @ (kg_vector(b) - scaled @ free)
    udot = kg_backward(L, (free + held)[:, None])[:, 0]
    return ok, kg_scalars(udot), kg_scalars(G.T @ held), [rank]


def kg_udwadia_kalaba_many(n_u, n_c, m, Q, J, X):
    """The same for m right sides X (n_u + n_c, m); the first n_u rows of the result are the accelerations."""
    J, X = kg_matrix(n_c, n_u, J), kg_matrix(n_u + n_c, m, X)
    ok, L = kg_cholesky(kg_matrix(n_u, n_u, Q))
    scaled, free = kg_forward(L, J.T).T, kg_forward(L, X[:n_u])
    G, _ = kg_pseudoinverse(scaled, kg_squares(scaled))
    udot = kg_backward(L, free + G @ (X[n_u:] - scaled @ free))
    return ok, kg_scalars(jnp.concatenate([udot, X[n_u:]]).ravel())


def kg_row_scales(rows, terms):
    """The squared sizes of rows; of one that all but vanishes that of its terms."""
    squares = kg_squares(rows)
    largest = jnp.max(squares, initial=0.0)
    near = squares <= 1e-6 * largest
    return jnp.where(near, jnp.maximum(squares, jnp.minimum(largest, terms)), squares)


def kg_nearest(rows, sides, rates, h, terms, y):
    """Change y as little as possible so that ``rows @ y = sides``, nearly dependent rows replaced by their rates.

    Returns y, the multipliers (0 for replaced rows), the rank, and the rows in use. Derivatives take the combination of
    rows that is replaced as constant.
    """
    U = kg_orthogonal_rows(rows)
    rest, directions, changes = U @ (sides - rows @ y), U @ rows, U @ rates
    fixed, moving = lax.stop_gradient(directions), lax.stop_gradient(changes)
    scales = (U * U) @ kg_row_scales(lax.stop_gradient(rows), lax.stop_gradient(terms))
    values, limits = kg_squares(fixed), 1e-6 * scales
    weights = jnp.where(values > limits, 1.0 / jnp.where(values > limits, values, 1.0), 0.0)
    left = kg_squares(moving - ((moving @ fixed.T) * weights) @ fixed)
    moving_rows = (U * U) @ kg_squares(lax.stop_gradient(rates))
    moves = left > kg_tolerance(1e-6, 1e-4) ** 2 * moving_rows
    near = values <= limits * (left / jnp.where(moves, moving_rows, 1.0))
    replaced = (values <= limits) & moves & near
    independent = values > kg_tolerance(1e-9, 1e-4) ** 2 * scales
    kept = jnp.where(replaced[:, None], 0.0, directions)
    G, _ = kg_pseudoinverse(kept, scales)
    change = G @ rest
    y = y + change
    free = jnp.where(replaced[:, None], changes - changes @ G @ kept, 0.0)
    missing = jnp.where(replaced, -(U @ h) - changes @ y, 0.0)
    y = y + kg_pseudoinverse(free, kg_squares(free))[0] @ missing
    used = jnp.where((independent & jnp.logical_not(replaced))[:, None], directions, 0.0) + free
    return y, U.T @ (G.T @ change), jnp.sum(jnp.where(independent, 1.0, 0.0)), used


def kg_udwadia_kalaba_limit(n_u, n_c, Q, P, J, b, terms, G, h):
    """Solve Q u' = P + J^T lambda, J u' = b, with nearly dependent rows replaced by their time derivatives."""
    J, P, G = kg_matrix(n_c, n_u, J), kg_vector(P), kg_matrix(n_c, n_u, G)
    ok, L = kg_cholesky(kg_matrix(n_u, n_u, Q))
    scaled, rates, free = kg_forward(L, J.T).T, kg_forward(L, G.T).T, kg_forward(L, P[:, None])[:, 0]
    y, multipliers, rank, _ = kg_nearest(scaled, kg_vector(b), rates, kg_vector(h), kg_vector(terms), free)
    return ok, kg_scalars(kg_backward(L, y[:, None])[:, 0]), kg_scalars(multipliers), [rank]


def kg_turn(S, Q):
    """X with X S + S X = Q: the derivative of the symmetric root S along Q."""
    n = S.shape[0]
    both = jnp.kron(jnp.eye(n), S) + jnp.kron(S, jnp.eye(n))
    return kg_general_solution(both, Q.reshape(n * n, 1))[1].reshape(n, n)


@jax.custom_jvp
def kg_symmetric_root(Q):
    """The symmetric positive definite root of Q."""
    values, V = jnp.linalg.eigh(Q)
    return (V * jnp.sqrt(values)) @ V.T


def kg_symmetric_root_rule(primals, tangents):
    """The derivative of the symmetric root."""
    S = kg_symmetric_root(*primals)
    return S, kg_turn(S, tangents[0])


kg_symmetric_root.defjvp(kg_symmetric_root_rule)


def kg_canonical(n_u, n_c, Q, Qdot, P, J, b, u, terms, G, h):
    """Constraint-enforcing and momentum-balance parts of u' and (Q^1/2 u)' (Bajodah and Chen 2018)."""
    Q, Qdot = kg_matrix(n_u, n_u, Q), kg_matrix(n_u, n_u, Qdot)
    ok, _ = kg_cholesky(lax.stop_gradient(Q))
    S, u = kg_symmetric_root(jnp.tril(Q) + jnp.tril(Q, -1).T), kg_vector(u)[:n_u]
    right = jnp.concatenate([kg_matrix(n_c, n_u, J), kg_matrix(n_c, n_u, G), kg_vector(P)[None]]).T
    scaled = kg_general_solution(S, right)[1].T
    rows, rates, free = scaled[:n_c], scaled[n_c : 2 * n_c], scaled[-1]
    y, _, _, used = kg_nearest(rows, kg_vector(b), rates, kg_vector(h), kg_vector(terms), free)
    turning = kg_turn(S, Qdot) @ u
    onto = kg_pseudoinverse(used, kg_squares(used))[0] @ used
    held, held_turning = onto @ y, onto @ turning
    parts = jnp.stack([held, y - held], axis=1)
    of_u = kg_general_solution(S, parts)[1].T
    of_w = parts.T + jnp.stack([held_turning, turning - held_turning])
    return ok, kg_scalars(jnp.concatenate([of_u, of_w]).ravel())


# -- controls of servo-constraints -------------------------------------------------------------------------------------


def kg_control_solve(m, n, A, z, y):
    """x = A^+ z + (I - A^+ A) y; fails if z is not in the range of A."""
    A, z, y = kg_matrix(m, n, A), kg_vector(z), kg_vector(y)
    G, rank = kg_pseudoinverse(A, kg_squares(A))
    rest = z - A @ y
    change = G @ rest
    missing = jnp.sqrt(jnp.sum(lax.stop_gradient(rest - A @ change) ** 2))
    limit = kg_tolerance(1.5e-8, 3.5e-4) * jnp.sqrt(jnp.sum(lax.stop_gradient(z) ** 2)) + kg_tolerance(1e-12, 1e-4)
    return (rank == m) | (missing <= limit), kg_scalars(y + change)


@jax.custom_jvp
def kg_damped_inverse(S, damping):
    """The inverse of S, symmetric and not negative, with eigenvalues below damping^2 replaced by it."""
    values, V = jnp.linalg.eigh(S)
    return (V / jnp.maximum(values, damping**2)) @ V.T


def kg_damped_inverse_rule(primals, tangents):
    """The derivative by divided differences (Daleckii and Krein 1965)."""
    (S, damping), (dS, change) = primals, tangents
    values, V = jnp.linalg.eigh(S)
    limited = jnp.maximum(values, damping**2)
    above = values > damping**2
    both = above[:, None] & above
    gaps = jnp.where(above[:, None] ^ above, values[:, None] - values, 1.0)
    mixed = jnp.where(above[:, None] ^ above, (1.0 / limited[:, None] - 1.0 / limited) / gaps, 0.0)
    slopes = jnp.where(both, -1.0 / (limited[:, None] * limited), mixed)
    inner = slopes * (V.T @ dS @ V) + jnp.diag(jnp.where(above, 0.0, -2.0 * change / damping**3))
    return (V / limited) @ V.T, V @ inner @ V.T


kg_damped_inverse.defjvp(kg_damped_inverse_rule)


def kg_control_damped(m, n, A, z, damping):
    """x = A^+ z, with s / damping^2 for 1 / s if a singular value s of A is below the damping."""
    A, z = kg_matrix(m, n, A), kg_vector(z)
    return jnp.asarray(True), kg_scalars(A.T @ (kg_damped_inverse(A @ A.T, kg_vector(damping)[0]) @ z))


def kg_control_feasibility(m, n, A, z):
    """x = A^+ z, then rank and smallest singular value of A, and 1 if z is in its range."""
    ok, x = kg_control_solve(m, n, A, z, [0.0] * n)
    A = kg_matrix(m, n, A)
    rows = kg_orthogonal_rows(A) @ A
    rank = lax.stop_gradient(kg_pseudoinverse(A, kg_squares(A))[1])
    largest = lax.top_k(kg_squares(rows), min(m, n))[0]
    full = rank == min(m, n)
    smallest = jnp.where(full, jnp.sqrt(jnp.where(full, largest[-1], 1.0)), 0.0)
    return jnp.asarray(True), x, [rank, smallest, jnp.where(ok, 1.0, 0.0)]
