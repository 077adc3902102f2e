# Inverse dynamics along a path: controls, multipliers and functions of them, at many times in one call.

cdef extern from "module_runtime.h" nogil:
{{ structs(("kg_inverse", "kg_inverse_result"), known=("kg_function",)) }}
    size_t kg_module_inverse_work(const kg_inverse *)
    int kg_module_inverse_speeds(const kg_inverse *, const kg_point *, const double *, const double *, const double *,
                                 double *, double *, double *, double *)
    int kg_module_inverse_dynamics(const kg_inverse *, const kg_point *, const double *, double *, const double *,
                                   double *, kg_inverse_result *)


cdef class Inverse:
    """The functions of inverse dynamics; ``slots`` are the indices of the controls in r."""

    cdef kg_inverse model
    cdef double *work
    cdef object slots

    def __cinit__(self, slots):
        self.slots, n_tau = _indices(slots, MODEL.n_r, "slots")
        self.model.n_q, self.model.n_u = MODEL.n_q, MODEL.n_u
        self.model.kinematics, self.model.controls = _find("kinematics"), _find("control_forces")
        self.model.mass, self.model.forces = _find(MASS), _find("P")
        if n_tau != self.model.controls.rows:
            raise SolveError(f"there are {n_tau} slots for {self.model.controls.rows} controls")
        constrained = FUNCTIONS.get("J", (0,))[0] > 0
        self.model.jacobian = _find("J") if constrained else NULL
        self.model.bias = _find("b") if constrained else NULL
        self.model.slots = <int *>PyArray_DATA(<PyArrayObject *>self.slots)
        self.work = <double *>malloc((kg_module_inverse_work(&self.model) + 1) * sizeof(double))
        if self.work == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.work)

    def along(self, prepared, inputs, times, q, qdot, qddot, others=()):
        """Inverse dynamics at each sample of a path: a dict of arrays, NaN where ``status`` (n_t,) is negative.

        ``times`` (n_t,); ``q``, ``qdot``, ``qddot`` (n_t, n_q). In the dict: ``u``, ``udot``, ``residual`` (n_t, n_u),
        ``controls`` (n_t, n_tau), ``multipliers``, ``violation`` (n_t, n_c), ``slip`` (n_t, n_q), ``rank`` (n_t,), and
        each function named in ``others``, (n_t, its length), evaluated with the controls of the motion.
        """
        cdef Run run = Run(Function("control_forces", prepared), _of_time(inputs, "inverse dynamics"))
        cdef const double *p = (<Prepared>prepared).values
        cdef kg_inverse_result result
        cdef int n_c = 0 if self.model.jacobian == NULL else self.model.jacobian.rows
        cdef int i, status
        cdef double t
        cdef size_t n_t
        cdef kg_point *at = &run.evaluation.at
        cdef double *at_u
        cdef double *at_udot
        t_ = _as_array(times, "times")
        if t_.ndim != 1:
            raise SolveError(f"times have shape {t_.shape}; expected (n_t,)")
        n_t = t_.size
        q_ = _as_matrix(q, n_t, MODEL.n_q, "q")
        rates, accelerations = _as_matrix(qdot, n_t, MODEL.n_q, "qdot"), _as_matrix(qddot, n_t, MODEL.n_q, "qddot")
        widths = dict(
            u=MODEL.n_u, udot=MODEL.n_u, residual=MODEL.n_u, controls=self.model.controls.rows, multipliers=n_c,
            violation=n_c, slip=MODEL.n_q,
        )
        arrays = {name: numpy.full((n_t, width), numpy.nan) for name, width in widths.items()}
        functions = [Function(name, prepared) for name in _listed(others, "others")]
        arrays.update({f.name: numpy.full((n_t, (<Function>f).n_out), numpy.nan) for f in functions})
        statuses, ranks = numpy.zeros(n_t, dtype=numpy.intc), numpy.zeros(n_t, dtype=numpy.intc)
        for i in range(<int>n_t):
            t = _data(t_)[i]
            at_u, at_udot = _data(arrays["u"]) + i * MODEL.n_u, _data(arrays["udot"]) + i * MODEL.n_u
            result.tau = _data(arrays["controls"]) + i * self.model.controls.rows
            result.lambda_ = _data(arrays["multipliers"]) + i * n_c
            result.violation = _data(arrays["violation"]) + i * n_c
            result.residual = _data(arrays["residual"]) + i * MODEL.n_u
            result.slip = _data(arrays["slip"]) + i * MODEL.n_q
            at.t, at.q, at.u = t, _data(q_) + i * MODEL.n_q, at_u
            status = _fill(&run.evaluation.source, t, NULL, 0, run.evaluation.r)
            if status == STATUS_PYTHON:
                raise run.error
            status = kg_module_inverse_speeds(
                &self.model, at, _data(rates) + i * MODEL.n_q, _data(accelerations) + i * MODEL.n_q, p, self.work, at_u,
                at_udot, result.slip
            )
            if status >= 0:
                status = kg_module_inverse_dynamics(
                    &self.model, at, at_udot, run.evaluation.r, p, self.work, &result
                )
            statuses[i] = status
            if status < 0:
                continue
            ranks[i] = result.rank
            for f in functions:
                _value_of(<Function>f, at, _data(arrays[f.name]) + i * (<Function>f).n_out)
        return dict(arrays, status=statuses, rank=ranks)
