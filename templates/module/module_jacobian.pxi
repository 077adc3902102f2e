# The derivatives of a right-hand side that an implicit method needs, assembled from the compiled Jacobians.

cdef struct Slopes:
    const kg_function *in_q
    const kg_function *in_u
    const kg_function *in_s  # NULL: no states
    const kg_function *in_t
    const kg_function *laws  # these six: if the feedback laws of inputs are compiled with their derivatives, else NULL
    const kg_function *in_r
    const kg_function *law_in_q
    const kg_function *law_in_u
    const kg_function *law_in_s  # NULL: no states
    const kg_function *law_in_t
    const kg_stepper *stepper  # whose steps differences in time must suit
    double *memory
    double *block  # one Jacobian before its columns are copied
    double *work
    double *state  # one that is disturbed to find how the inputs depend on it
    double *rates
    double *law_block


cdef int _open_slopes(Slopes *s, Function function, str method, const kg_stepper *stepper) except -1:
    """Find the Jacobians of a right-hand side and allocate memory; ``method`` is named in messages."""
    cdef size_t size, entries = 0
    if function.name not in ("rhs", "rhs_stabilized"):
        raise SolveError(
            f"method {method!r} needs the Jacobian of the right-hand side, and {function.name} has none: choose an "
            "explicit method, or build the model in a form whose state is (q, u)"
        )
    needed = ("jacobian_q", "jacobian_u", "jacobian_t") + (("jacobian_s",) if N_S else ())
    missing = [name for name in needed if name not in FUNCTIONS]
    if missing:
        raise SolveError(
            f"method {method!r} needs {', '.join(missing)}, which the model {NAME} was built without: build it with "
            'functions=("rhs", "residuals", "jacobians") or more'
        )
    s.in_q, s.in_u, s.in_t = _find("jacobian_q"), _find("jacobian_u"), _find("jacobian_t")
    s.in_s = _find("jacobian_s") if N_S else NULL
    size = <size_t>function.n_out * max(function.n_q, function.n_u, N_S, MODEL.n_r)
    work = max(s.in_q.work, s.in_u.work, s.in_t.work, s.in_s.work if N_S else 0)
    of_laws = ("jacobian_r", "laws_q", "laws_u", "laws_t") + (("laws_s",) if N_S else ())
    if set(of_laws) <= FUNCTIONS.keys():
        s.laws, s.in_r = _find("laws"), _find("jacobian_r")
        s.law_in_q, s.law_in_u, s.law_in_t = _find("laws_q"), _find("laws_u"), _find("laws_t")
        s.law_in_s = _find("laws_s") if N_S else NULL
        work = max(work, max([_find(name).work for name in of_laws]))
        entries = s.law_in_t.rows * max(function.n_q, function.n_u, N_S)
    s.memory = <double *>malloc((size + work + 2 * function.n_out + entries + 1) * sizeof(double))
    if s.memory == NULL:
        raise MemoryError
    s.block, s.state, s.stepper = s.memory, s.memory + size, stepper
    s.rates = s.state + function.n_out
    s.law_block = s.rates + function.n_out
    s.work = s.law_block + entries
    return 0


cdef int _columns(
    Evaluation *e, const kg_function *function, double t, const double *y, int n, double *J
) noexcept nogil:
    """Copy one Jacobian into columns of a matrix with n columns; J points to the first of them."""
    cdef Slopes *s = <Slopes *>e.slopes
    cdef int status = function.evaluate(&e.at, e.p, s.work, s.block)
    cdef int i
    if status < 0:
        return status
    for i in range(n):
        memcpy(J + <size_t>i * n, s.block + <size_t>i * function.cols, function.cols * sizeof(double))
    return KG_OK


cdef bint _has_feedback(Evaluation *e) noexcept nogil:
    """Whether the inputs at an instant depend on the state then."""
    cdef const ControlLoop *c
    cdef int k
    if e.source.of_state:
        return True
    for k in range(0 if e.feedback == NULL else e.feedback.n_laws):
        c = <ControlLoop *>e.loops[k]
        if not c.is_held and (c.law != NULL or c.source.of_state):
            return True
    return False


cdef bint _has_compiled_slopes(Evaluation *e) noexcept nogil:
    """Whether all feedback follows the laws of inputs whose derivatives are compiled."""
    cdef Slopes *s = <Slopes *>e.slopes
    cdef const ControlLoop *c
    cdef int k
    if s.laws == NULL or e.source.of_state:
        return False
    for k in range(0 if e.feedback == NULL else e.feedback.n_laws):
        c = <ControlLoop *>e.loops[k]
        if not c.is_held and c.law != s.laws:
            return False
    return True


cdef int _add_law_columns(
    Evaluation *e, const kg_function *law, double t, const double *y, int n, int columns, int stride, double *J
) noexcept nogil:
    """Add df/dr dlaw/dx to columns of a matrix with rows of length stride; J points to the first of them.

    The derivatives of the right-hand side in the inputs are in the block.
    """
    cdef Slopes *s = <Slopes *>e.slopes
    cdef const kg_law *group
    cdef int status = law.evaluate(&e.at, e.p, s.work, s.law_block)
    cdef int i, j, k, m, place
    cdef double slope
    for m in range(0 if status < 0 else e.feedback.n_laws):
        group = e.feedback.laws + m
        for k in range(group.n if group.clock < 0 else 0):
            place = k if group.places == NULL else group.places[k]
            for i in range(n):
                slope = s.block[<size_t>i * MODEL.n_r + group.slots[k]]
                for j in range(columns):
                    J[<size_t>i * stride + j] += slope * s.law_block[place * columns + j]
    return min(status, KG_OK)


cdef int _add_laws(Evaluation *e, double t, const double *y, int n, double *J, double *dfdt) noexcept nogil:
    """Add the effect of the laws of inputs, df/dr dlaw/dy and df/dr dlaw/dt, to the derivatives at constant inputs."""
    cdef Slopes *s = <Slopes *>e.slopes
    cdef int status = s.in_r.evaluate(&e.at, e.p, s.work, s.block)
    if status >= 0:
        status = _add_law_columns(e, s.law_in_q, t, y, n, e.n_q, n, J)
    if status >= 0:
        status = _add_law_columns(e, s.law_in_u, t, y, n, s.in_u.cols, n, J + e.n_q)
    if status >= 0 and s.law_in_s != NULL:
        status = _add_law_columns(e, s.law_in_s, t, y, n, N_S, n, J + e.first_state)
    if status >= 0:
        status = _add_law_columns(e, s.law_in_t, t, y, n, 1, 1, dfdt)
    return status


cdef int _add_feedback(Evaluation *e, double t, const double *y, const double *dydt, int n, double *J) noexcept nogil:
    """Add df/dr dr/dy to J, as difference quotients in the inputs r of the disturbed states."""
    cdef Slopes *s = <Slopes *>e.slopes
    cdef int status = KG_OK
    cdef int i, k
    memcpy(s.state, y, n * sizeof(double))
    for k in range(n):
        s.state[k] = y[k] + kg_stepper_difference(s.stepper, k, y[k])
        status = _inputs_at(e, t, s.state)
        if status >= 0:
            _place(e, t, y)
            status = e.evaluate(&e.at, e.p, e.work, s.rates)
        if status < 0:
            return status
        for i in range(n):
            J[<size_t>i * n + k] += (s.rates[i] - dydt[i]) / (s.state[k] - y[k])
        s.state[k] = y[k]
    return _inputs_at(e, t, y)


cdef int _jacobian(
    void *context, double t, const double *y, const double *dydt, double *J, double *dfdt
) noexcept nogil:
    cdef Evaluation *e = <Evaluation *>context
    cdef Slopes *s = <Slopes *>e.slopes
    cdef int n = s.in_q.rows
    cdef int status = _inputs_at(e, t, y)
    if status >= 0:
        status = _columns(e, s.in_q, t, y, n, J)
    if status == KG_OK:
        status = _columns(e, s.in_u, t, y, n, J + e.n_q)
    if status == KG_OK and s.in_s != NULL:
        status = _columns(e, s.in_s, t, y, n, J + e.first_state)
    if status < 0:
        return status
    if _has_feedback(e) and not _has_compiled_slopes(e):
        status = _add_feedback(e, t, y, dydt, n, J)
        return status if status < 0 else _slope_in_time(e, t, y, dydt, n, dfdt)
    status = s.in_t.evaluate(&e.at, e.p, s.work, dfdt)
    if status >= 0 and _has_feedback(e):
        status = _add_laws(e, t, y, n, J, dfdt)
    if status >= 0 and e.source.kind != INPUT_CONSTANT:
        status = _slope_in_time(e, t, y, dydt, n, dfdt)
    return status


cdef int _slope_in_time(
    Evaluation *e, double t, const double *y, const double *dydt, int n, double *dfdt
) noexcept nogil:
    """df/dt including the change of the inputs, whose derivatives are unknown, as a difference quotient."""
    cdef double later = t + kg_stepper_time_difference((<Slopes *>e.slopes).stepper)
    cdef int status = _right_hand_side(e, later, y, dfdt)
    cdef int i
    if status < 0:
        return status
    for i in range(n):
        dfdt[i] = (dfdt[i] - dydt[i]) / (later - t)
    return KG_OK
