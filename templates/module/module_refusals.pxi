# Error messages for functions without a finite value: which entry, at which state, and what to look for.

RIGHT_HAND_SIDES = ("rhs", "rhs_stabilized", "momentum_rhs")
JACOBIANS = {
    "jacobian_q": COORDINATES, "jacobian_u": SPEEDS, "jacobian_s": STATES, "jacobian_r": INPUTS,
    "jacobian_p": PARAMETERS, "jacobian_t": ("t",),
}


cdef str _state(Function f, const kg_point *a):
    """The arguments of an evaluation, for messages."""
    values = [f"{name}={a.q[i]!r}" for i, name in enumerate(COORDINATES)]
    values += [f"{name}={a.u[i]!r}" for i, name in enumerate(SPEEDS)]
    values += [f"{name}={a.r[i]!r}" for i, name in enumerate(INPUTS)]
    values += [f"{name}={a.s[i]!r}" for i, name in enumerate(STATES)]
    return ", ".join([f"t={a.t!r}", *values])


cdef object _refuse_result(Function f, const kg_point *a, const double *out):
    """Raise SolveError naming the entries of a result that are not finite (at least one is not)."""
    wrong = [f"{_entry(f, i)} is {out[i]!r}" for i in range(f.n_out) if not out[i] - out[i] == 0.0]
    more = f" and {len(wrong) - 3} more entries are not finite" if len(wrong) > 3 else ""
    raise SolveError(
        f"{f.name} is not finite: {', '.join(wrong[:3])}{more} ({_state(f, a)}). An expression of the model has no finite "
        "value or derivative there: look for a division by zero, and for sqrt, log, asin, acos or a power of numbers "
        "outside their domain; Max, Min or Piecewise can limit such arguments"
    )


cdef object _refuse_ingredients(Function f, const kg_point *a):
    """Raise SolveError if equations could not be solved because their matrices are not finite."""
    cdef Function part
    if f.prepared.undefined:
        return None
    for name in (MASS, "J", "P", "b"):
        if name in FUNCTIONS and name != f.name:
            part = Function(name, f.prepared)
            if part.evaluate(a, part.p, part.work, part.scratch) >= 0:
                if not kg_module_all_finite(part.n_out, part.scratch):
                    _refuse_result(part, a, part.scratch)


_BEYOND = (
    'say what is beyond, by extrapolate="constant" or "polynomial" of the table, or a last branch (value, True) of a '
    "Piecewise, or give points that reach further"
)
_SEVERAL = (
    "the closest point is not unique there: give a disk that comes to lie flat points on its rim (rim=), and surfaces "
    "that interpenetrate so far a stiffer law, or start from another state"
)


cdef object _refuse_outside(Function f, const kg_point *a):
    """Raise SolveError naming the table that has no value at the arguments."""
    cdef Function tables
    if not TABLES:
        return None
    tables = Function("tables", f.prepared)
    if tables.evaluate(a, tables.p, tables.work, tables.scratch) < 0:
        return None
    for i, (label, lowest, highest) in enumerate(TABLES):
        if tables.scratch[2 * i + 1] == 0.0:
            raise SolveError(
                f"{f.name} cannot be evaluated: the argument of {label} is {tables.scratch[2 * i]:.9g}, but it has values "
                f"from {lowest:.9g} to {highest:.9g} only ({_state(f, a)}): "
                f"{_SEVERAL if label.startswith('the closest point') else _BEYOND}"
            )


cdef str _entry(Function f, int index):
    """An entry of a result by index, with the names of its row and column if they are known."""
    cdef int row, column
    if f.dimensions == 0:
        return f.name
    width = f.size[1] if f.dimensions == 2 else 1
    row, column = index // width, index % width
    place = f"{row}, {column}" if f.dimensions == 2 else str(row)
    if f.name in RIGHT_HAND_SIDES and row < f.n_q:
        return f"qdot[{row}] ({COORDINATES[row]}')"
    if f.name in RIGHT_HAND_SIDES and row >= f.n_out - N_S:
        k = row - (f.n_out - N_S)
        return f"sdot[{k}] ({STATES[k]}')"
    if f.name == "momentum_rhs":
        return f"momdot[{row - f.n_q}]"
    if f.name in RIGHT_HAND_SIDES:
        return f"udot[{row - f.n_q}] ({SPEEDS[row - f.n_q]}')"
    if f.name in JACOBIANS:
        return f"{f.name}[{place}] (d {(COORDINATES + SPEEDS + STATES)[row]}' / d {JACOBIANS[f.name][column]})"
    return f"{f.name}[{place}]"
