# Evaluation from Python: one Function object is one compiled function with its parameters.

cdef class Prepared:
    """Parameters and stabilization gains of a run, with the constants that depend on them only.

    ``parameters``: (n_p,) in the order of PARAMETERS; ``gains``: (n_g,), by default zero. ``allowed``: indices of
    constants that need not be finite; the caller evaluates no function that needs them. Other constants that are not
    finite raise SolveError. ``undefined`` lists the constants that are not finite, ``complaint`` explains them.
    ``partial``: parameters can be NaN, for no value, and constants NaN; the caller evaluates no function that reads them.
    """

    cdef double *values
    cdef readonly object parameters, gains
    cdef readonly tuple undefined

    def __cinit__(self, parameters, gains=None, allowed=(), partial=False):
        indices, n_allowed = _indices(allowed, MODEL.n_prepared, "allowed")
        allowed = frozenset(indices[:n_allowed].tolist())
        p = _as_vector(parameters, PARAMETERS, "parameters")
        if not partial:
            _check_finite(p, PARAMETERS, "parameters")
        labels = tuple([f"gain {i}" for i in range(N_GAINS)])
        g = numpy.zeros(N_GAINS) if gains is None else _as_vector(gains, labels, "gains")
        _check_finite(g, labels, "gains")
        self.parameters = p.copy()
        self.gains = g.copy()
        self.parameters.flags.writeable = False
        self.gains.flags.writeable = False
        # One value more than needed: malloc(0) may return NULL.
        self.values = <double *>PyMem_Malloc((MODEL.n_prepared + 1) * sizeof(double))
        if self.values == NULL:
            raise MemoryError
        memcpy(self.values, _data(p), MODEL.n_p * sizeof(double))
        memcpy(self.values + MODEL.n_p, _data(g), MODEL.n_g * sizeof(double))
        MODEL.prepare(self.values)
        self.check_constants(range(MODEL.n_prepared) if partial else allowed)

    cdef int check_constants(self, allowed) except -1:
        """Raise SolveError for parameters with which constants outside ``allowed`` are not finite."""
        cdef int i, first = MODEL.n_p + MODEL.n_g
        undefined = []
        for i in range(first, MODEL.n_prepared):
            if self.values[i] - self.values[i] != 0.0:
                undefined.append(i - first)
        self.undefined = tuple(undefined)
        if undefined and not frozenset(allowed).issuperset(undefined):
            raise SolveError(f"the equations of {NAME!r} {self.complaint}")
        return 0

    @property
    def complaint(self):
        """The reason why constants are undefined, for messages."""
        values = list(zip(PARAMETERS, self.parameters))
        zeros = [name for name, value in values if value == 0.0]
        extremes = [f"{name} = {value:g}" for name, value in values if 0 < abs(value) < 1e-100 or abs(value) > 1e100]
        if extremes and not zeros:
            return (
                f"contain products that are larger or smaller than every number for these parameters "
                f"({', '.join(extremes)}): give other values, or other units"
            )
        return (
            "divide by something that is zero for these parameters "
            f"(zero are: {', '.join(zeros) or 'none, but a combination vanishes'}): a speed then moves no mass, loads "
            "in u' cancel its inertia (Q - dF/du' is singular), or an expression of the model has no value; give other "
            'values, or build with form="augmented" or "nonminimal", which admit parts without mass if the constraints '
            "determine how they move"
        )

    def __dealloc__(self):
        PyMem_Free(self.values)


cdef const kg_function *_find(object name) except NULL:
    cdef int i
    wanted = name.encode("utf-8", "replace") if isinstance(name, str) else None
    for i in range(MODEL.n_functions):
        if wanted == MODEL.functions[i].name:
            return &MODEL.functions[i]
    raise SolveError(
        f"the model {NAME} was built without the function {_shown(name)}; it has {', '.join(FUNCTIONS)}"
    )


cdef class Function:
    """One compiled function of the model with parameters and default inputs.

    ``inputs`` (n_r,) and ``states`` (n_s,): values used where a call passes no ``r`` or ``s``; NaN marks those without a
    default, None all. Arguments of the calls: ``t`` in seconds, ``q`` (n_q,), ``u`` (n_u,), ``r`` (n_r,), the states
    ``s`` (n_s,), the ``forces`` of contacts (n_rows,) and the ``free`` vector of servo-constraints (n_free,), which are
    zero by default, real numbers. Arguments with N rows, ``t`` (N,), ``q`` (N, n_q) and so on, give results with N rows;
    an argument without rows applies to all. Invalid arguments and results that are NaN or infinite raise SolveError,
    which names the entry and the row; the contents of ``out`` are then undefined.

    ``named(q, u, r, s)``, optional, returns the arrays of a state of which q or u is None or one of them a mapping.
    """

    cdef const kg_function *function
    cdef kg_evaluate evaluate
    cdef const double *p
    cdef const double *default_r  # NULL: an input has none
    cdef const double *default_s
    cdef double *scratch
    cdef double *work
    cdef int n_q, n_u, n_r, n_s, n_out, dimensions
    cdef npy_intp size[2]
    cdef readonly long long repartitioned
    cdef readonly str name
    cdef readonly tuple shape
    cdef readonly Prepared prepared
    cdef readonly object inputs, states
    cdef object named

    def __cinit__(self, name, prepared, inputs=None, named=None, states=None):
        _require_prepared(prepared)
        self.function = _find(name)
        self.evaluate = self.function.evaluate
        self.name, self.prepared, self.shape, self.named = name, prepared, _shape(self.function), named
        self.p = self.prepared.values
        self.n_q, self.n_u, self.n_r, self.n_s = MODEL.n_q, MODEL.n_u, MODEL.n_r, N_S
        self.dimensions = len(self.shape)
        self.n_out = 1
        for i in range(self.dimensions):
            self.size[i] = self.shape[i]
            self.n_out *= self.shape[i]
        self.inputs, self.states = _defaults(inputs, INPUTS, "inputs"), _defaults(states, STATES, "states")
        self.default_r = _data(self.inputs) if _is_finite(_data(self.inputs), self.n_r) else NULL
        self.default_s = _data(self.states) if _is_finite(_data(self.states), self.n_s) else NULL
        self.work = <double *>PyMem_Malloc((self.function.work + self.n_out + 1) * sizeof(double))
        if self.work == NULL:
            raise MemoryError
        self.scratch = self.work + self.function.work

    def __dealloc__(self):
        PyMem_Free(self.work)

    def pair(self, t, q, u, r=None, s=None, out=None, forces=None, free=None):
        """(q', u') of a right-hand side: arrays (n_q,) and (n_u,), new ones or those of ``out=(qdot, udot)``.

        For a model with states (q', u', s'), the last array (n_s,).
        """
        cdef kg_point a
        cdef kg_rows rows
        cdef int n_u = self.n_out - self.n_q - N_S
        if n_u < 0 or self.dimensions != 1:
            raise SolveError(f"{self.name} has shape {self.shape}; only a right-hand side is a pair (q', u')")
        arguments = None
        if not _is_plain(self, t, q, u, r, s, forces, free, &a):
            arguments = self._read(t, q, u, r, s, forces, free, &rows)
            if rows.has_rows:
                return _pair_rows(self, arguments, &rows, out)
            _open_state(&rows, arguments, &a)
        if out is None:
            qdot, udot = _new_vector(self.n_q), _new_vector(n_u)
            out = (qdot, udot) if N_S == 0 else (qdot, udot, _new_vector(N_S))
        else:
            if type(out) is not tuple or len(<tuple>out) != (2 if N_S == 0 else 3):
                out = _as_outputs(out)
            qdot, udot = (<tuple>out)[0], (<tuple>out)[1]
            if not _is_output(self, qdot, self.n_q, &a):
                self._check_output(qdot, self.n_q, "out[0] (qdot)", &a)
            if not _is_output(self, udot, n_u, &a):
                self._check_output(udot, n_u, "out[1] (udot)", &a)
            if _overlap(_data(qdot), self.n_q * 8, _data(udot), n_u * 8):
                _refuse_overlap("out[0] (qdot)", "out[1] (udot)")
            if N_S:
                self._check_state_rates((<tuple>out)[2], qdot, udot, &a)
        cdef int status = self.evaluate(&a, self.p, self.work, self.scratch)
        if status >= 0 and not _is_finite(self.scratch, self.n_out):
            status = KG_NOT_FINITE
        if status != KG_OK:
            self._report(status, &a, self.scratch)
        _copy(self.scratch, _data(qdot), self.n_q)
        _copy(self.scratch + self.n_q, _data(udot), n_u)
        if N_S:
            _copy(self.scratch + self.n_q + n_u, _data((<tuple>out)[2]), N_S)
        return out

    cdef int _check_state_rates(self, object sdot, object qdot, object udot, kg_point *a) except -1:
        self._check_output(sdot, N_S, "out[2] (sdot)", a)
        if _overlap(_data(sdot), N_S * 8, _data(qdot), self.n_q * 8):
            _refuse_overlap("out[2] (sdot)", "out[0] (qdot)")
        if _overlap(_data(sdot), N_S * 8, _data(udot), (self.n_out - self.n_q - N_S) * 8):
            _refuse_overlap("out[2] (sdot)", "out[1] (udot)")
        return 0

    def value(self, t, q, u, r=None, s=None, out=None, forces=None, free=None):
        """The function's value: a float, or an array of ``shape``, a new one or ``out``."""
        cdef kg_point a
        cdef kg_rows rows
        arguments = None
        if not _is_plain(self, t, q, u, r, s, forces, free, &a):
            arguments = self._read(t, q, u, r, s, forces, free, &rows)
            if rows.has_rows:
                return _evaluate_rows(self, arguments, &rows, out)
            _open_state(&rows, arguments, &a)
        if self.dimensions == 0:
            if out is not None:
                raise SolveError(f"{self.name} is a scalar and is returned; it takes no out=")
            status = kg_module_evaluate(self.function, &a, self.p, self.work, self.scratch, 1)
            if status != KG_OK:
                self._report(status, &a, self.scratch)
            return self.scratch[0]
        if out is None:
            out = PyArray_SimpleNew(self.dimensions, self.size, NPY_DOUBLE)
        else:
            self._check_output(out, -1, "out", &a)
        status = kg_module_evaluate(self.function, &a, self.p, self.work, _data(out), self.n_out)
        if status != KG_OK:
            self._report(status, &a, _data(out))
        return out

    def with_units(self, t, q, u, r=None, s=None):
        """The residuals and their units, each (n,): what they change by, to first order, when q and u change by the size
        of their largest components, or by 1 where all of them are zero."""
        cdef kg_point a
        cdef kg_rows rows
        arguments = None
        if not _is_plain(self, t, q, u, r, s, None, None, &a):
            arguments = self._read(t, q, u, r, s, None, None, &rows)
            _open_state(&rows, arguments, &a)
        values, units = _new_vector(self.n_out), _new_vector(self.n_out)
        scratch = _new_vector(self.n_q + self.n_u + self.n_out)
        status = kg_module_residual_units(
            self.function, self.n_q, self.n_u, &a, self.p, self.work, _data(values), _data(units), _data(scratch)
        )
        if status == KG_NOT_FINITE and kg_module_all_finite(self.n_out, _data(values)):
            raise SolveError(
                f"{self.name} cannot be judged: what they change by with the state is too large for a number "
                f"({_state(self, &a)}); give smaller values, or other units"
            )
        if status != KG_OK:
            self._report(status, &a, _data(values))
        return values, units

    def ode(self, t, y, r=None):
        """y' for y = (q, u, s) as one new array (n_q + n_u + n_s,): what scipy.integrate.solve_ivp takes.

        A y' that is not finite is a SolveError here, too: from NaN at the start RK45 would never return, and LSODA
        would report success.
        """
        cdef kg_point a
        cdef kg_rows rows
        cdef int n = self.n_q + self.n_u
        arguments = None
        if not _is_vector(y, n + N_S):
            y = _as_vector(y, COORDINATES + SPEEDS + STATES, "y")
        _leave_out(&a)
        a.q, a.u, a.r = _data(y), _data(y) + self.n_q, self.default_r if r is None else NULL
        if N_S:
            a.s = a.q + n
        if r is not None and _is_vector(r, self.n_r) and _is_finite(_data(r), self.n_r):
            a.r = _data(r)
        a.t = PyFloat_AS_DOUBLE(t) if PyFloat_CheckExact(t) else <double>_time(t)
        if not (a.r != NULL and a.t - a.t == 0.0 and _is_finite(a.q, n + N_S)):
            arguments = self._read(t, y[:self.n_q], y[self.n_q:n], r, y[n:] if N_S else None, None, None, &rows)
            _open_state(&rows, arguments, &a)
        result = _new_vector(self.n_out)
        status = kg_module_evaluate(self.function, &a, self.p, self.work, _data(result), self.n_out)
        if status != KG_OK:
            self._report(status, &a, _data(result))
        return result

    def low_level(self, r=None, control=None):
        """A PyCapsule with the C function ``int (double t, double *y, double *dydt, void *user_data)``.

        y = (q, u, s); the result is a status of kg_codes.h; if it is negative, dydt must not be used. ``user_data``, the
        context of the capsule, holds a copy of the parameters, work space and the inputs: ``r`` (n_r,), the defaults,
        or Inputs that are not Python code, and ``control``, Controls that are continuous laws. It exists as long as the
        capsule; only one thread at a time can use it.
        """
        return _low_level(self, r, _controls(control))

    cdef tuple _read(
        self, object t, object q, object u, object r, object s, object forces, object free, kg_rows *rows
    ):
        """Fill ``rows`` from the arguments of a call; returns the arrays, which must stay alive while it is used."""
        if self.named is not None and (
            q is None or u is None or _is_mapping(q) or _is_mapping(u) or _is_mapping(r) or _is_mapping(s)
        ):
            q, u, r, s = self.named(q, u, r, s)
        arguments = _read_arguments(t, q, u, r, s, forces, free, rows)
        if r is None:
            self._require_inputs()
            rows.first.r = self.default_r
        if s is None:
            if self.default_s == NULL:
                raise SolveError(
                    f"{self.name} needs the states of the model: pass s= ({N_S} values: {', '.join(STATES)})"
                )
            rows.first.s = self.default_s
        return arguments

    cdef int _require_inputs(self) except -1:
        """Raise SolveError for inputs without a default."""
        if self.default_r == NULL:
            missing = [name for name, value in zip(INPUTS, self.inputs) if value != value]
            raise SolveError(
                f"{self.name} needs values of the inputs without a default: {', '.join(missing)}; "
                f"pass r= ({MODEL.n_r} values: {', '.join(INPUTS)}) or give each Input a default"
            )
        return 0

    cdef int _check_output(self, object out, npy_intp n, str what, kg_point *a) except -1:
        """Raise SolveError for an output that cannot be written or shares memory with an input; n < 0: any shape."""
        cdef PyArrayObject *array = <PyArrayObject *>out
        cdef size_t size = 8 * (self.n_out if n < 0 else n)
        cdef bint fits
        if n >= 0:
            fits = _is_vector(out, n)
        else:
            fits = (
                PyArray_CheckExact(out) and PyArray_TYPE(array) == NPY_DOUBLE
                and PyArray_NDIM(array) == self.dimensions and PyArray_DIM(array, 0) == self.size[0]
                and (self.dimensions == 1 or PyArray_DIM(array, 1) == self.size[1]) and PyArray_ISCARRAY_RO(array)
            )
        if not (fits and PyArray_ISWRITEABLE(array)):
            _refuse_output(out, self.shape if n < 0 else (n,), what)
        if _overlap(PyArray_DATA(array), size, a.q, self.n_q * 8):
            _refuse_overlap(what, "q")
        if _overlap(PyArray_DATA(array), size, a.u, self.n_u * 8):
            _refuse_overlap(what, "u")
        if self.n_r and _overlap(PyArray_DATA(array), size, a.r, self.n_r * 8):
            _refuse_overlap(what, "r")
        if self.n_s and _overlap(PyArray_DATA(array), size, a.s, self.n_s * 8):
            _refuse_overlap(what, "s")
        if MODEL.n_rows and _overlap(PyArray_DATA(array), size, a.forces, MODEL.n_rows * 8):
            _refuse_overlap(what, "forces")
        return 0

    cdef object _report(self, int status, const kg_point *a, const double *out):
        if status >= 0:
            self.repartitioned += status == KG_REPARTITIONED
            return None
        if status == KG_NOT_FINITE:
            _refuse_result(self, a, out)
        if status == KG_OUTSIDE_TABLE:
            _refuse_outside(self, a)
        _refuse_ingredients(self, a)
        raise SolveError(
            f"{self.name} cannot be evaluated: {kg_module_status_message(status).decode()} ({_state(self, a)})"
        )


cdef object _defaults(object values, tuple names, str what):
    """The default values of some arguments, which cannot be changed; None: NaN for all."""
    array = _as_vector(numpy.full(len(names), numpy.nan) if values is None else values, names, what).copy()
    array.flags.writeable = False
    return array


cdef inline bint _is_plain(
    Function f, object t, object q, object u, object r, object s, object forces, object free, kg_point *a
) noexcept:
    """Fill ``a`` from arguments that need no conversion: finite arrays of one state without forces and free vector."""
    if not (PyFloat_Check(t) and forces is None and free is None and _is_vector(q, f.n_q) and _is_vector(u, f.n_u)):
        return False
    a.t, a.q, a.u, a.r = PyFloat_AS_DOUBLE(t), _data(q), _data(u), f.default_r
    _leave_out(a)
    if r is not None:
        if not _is_vector(r, f.n_r):
            return False
        a.r = _data(r)
    if f.n_s:
        a.s = f.default_s
        if s is not None:
            if not _is_vector(s, f.n_s):
                return False
            a.s = _data(s)
    elif s is not None:
        return False
    return (
        a.r != NULL and a.s != NULL and a.t - a.t == 0.0 and _is_finite(a.q, f.n_q) and _is_finite(a.u, f.n_u)
        and (r is None or _is_finite(a.r, f.n_r)) and (s is None or _is_finite(a.s, f.n_s))
    )


cdef inline bint _is_output(Function f, object out, npy_intp n, const kg_point *a) noexcept:
    """Whether a vector can be written and shares no memory with the arguments."""
    cdef double *data
    if not (_is_vector(out, n) and PyArray_ISWRITEABLE(<PyArrayObject *>out)):
        return False
    data = _data(out)
    return not (_overlap(data, n * 8, a.q, f.n_q * 8) or _overlap(data, n * 8, a.u, f.n_u * 8)
                or _overlap(data, n * 8, a.r, f.n_r * 8) or (f.n_s and _overlap(data, n * 8, a.s, f.n_s * 8))
                or (MODEL.n_rows and _overlap(data, n * 8, a.forces, MODEL.n_rows * 8)))


cdef inline bint _is_mapping(object value):
    if value is None or PyArray_CheckExact(value) or isinstance(value, (list, tuple)):
        return False
    return isinstance(value, _Mapping)


cdef object _as_outputs(object out):
    wanted = "two arrays (qdot, udot)" if N_S == 0 else "three arrays (qdot, udot, sdot)"
    if not isinstance(out, (tuple, list)) or len(out) != (2 if N_S == 0 else 3):
        raise SolveError(f"out is a {type(out).__name__}; expected a tuple of {wanted}")
    return tuple(out)


cdef int _value_of(Function f, const kg_point *a, double *out) except -1:
    """Write the value of a function into ``out``, unless the evaluation fails."""
    if f.evaluate(a, f.p, f.work, f.scratch) >= 0:
        memcpy(out, f.scratch, f.n_out * sizeof(double))
    return 0
