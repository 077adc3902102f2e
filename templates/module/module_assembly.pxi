# Assembly along a path of some coordinates and outputs: positions, speeds and accelerations of all coordinates.

cdef extern from "module_runtime.h" nogil:
{{ structs(("kg_assembly", "kg_assembly_work_arrays", "kg_assembly_time", "kg_assembly_state"), known=("kg_function", "kg_point")) }}
    size_t kg_module_assembly_place(const kg_assembly *, double *, kg_assembly_work_arrays *)
    int kg_module_assembly_prescribed(const kg_assembly *)
    int kg_module_assembly_first(const kg_assembly_time *, double *, int *)
    int kg_module_assembly_start(const kg_assembly_time *, const kg_assembly_state *, int *)
    int kg_module_assembly_step(const kg_assembly_time *, double, const kg_assembly_state *, const kg_assembly_state *,
                                int *)


cdef class Assembly:
    """The equations that assemble the model: its constraints, prescribed coordinates (indices) and outputs (names).

    ``velocities``: the number of constraints on velocities, from the first one, that the motion satisfies; ``linear``:
    they are linear in the speeds. The object keeps the scales of the equations from one call to the next.
    """

    cdef kg_assembly model
    cdef kg_assembly_work_arrays arrays
    cdef double *work
    cdef const kg_function **functions
    cdef object coordinates, prepared

    def __cinit__(self, prepared, coordinates, outputs, velocities, linear):
        cdef kg_assembly *a = &self.model
        cdef size_t length
        _require_prepared(prepared)
        self.prepared = prepared
        self.coordinates, a.n_coordinates = _indices(coordinates, MODEL.n_q, "coordinates")
        a.coordinates = <int *>PyArray_DATA(<PyArrayObject *>self.coordinates)
        a.n_q, a.n_u, a.angles = MODEL.n_q, MODEL.n_u, MODEL.angles
        a.kinematics = _find("kinematics")
        a.position = _find("position_level") if "position_level" in FUNCTIONS else NULL
        a.displacements = _find("displacements") if a.position != NULL else NULL
        a.velocity = _find("velocity_level") if "velocity_level" in FUNCTIONS else NULL
        a.bias = _find("b") if a.velocity != NULL else NULL
        a.n_w = a.displacements.cols if a.displacements != NULL else MODEL.n_u
        a.n_velocity = _whole(velocities, "velocities", 0, 0 if a.velocity == NULL else a.velocity.rows)
        a.linear = _whole(linear, "linear", 0, 1)
        names = _listed(outputs, "outputs")
        self.functions = <const kg_function **>malloc((len(names) + 1) * sizeof(kg_function *))
        if self.functions == NULL:
            raise MemoryError
        a.outputs = self.functions
        for name in names:
            self.functions[a.n_outputs] = _find(f"motion:{name}")
            a.n_outputs += 1
        length = kg_module_assembly_place(a, NULL, &self.arrays)
        self.work = <double *>calloc(length + 1, sizeof(double))
        if self.work == NULL:
            raise MemoryError
        kg_module_assembly_place(a, self.work, &self.arrays)

    def __dealloc__(self):
        free(self.work)
        free(self.functions)

    def place(self, inputs, t, q, target):
        """The position nearest to the guess ``q`` (n_q,) at which everything prescribed has its ``target`` (n, 3).

        Returns (status, q, index of the coordinate that is not determined or changes most).
        """
        cdef Run run = Run(Function("kinematics", self.prepared), _of_time(inputs, "a path"))
        cdef kg_assembly_time x
        cdef int worst = 0, status
        targets = _as_matrix(target, kg_module_assembly_prescribed(&self.model), 3, "target")
        found = _as_vector(q, COORDINATES, "q").copy()
        self.point(&x, run, _time(t), _data(targets))
        status = kg_module_assembly_first(&x, _data(found), &worst)
        return status, found, worst

    def follow(self, inputs, times, targets, q):
        """The motion along the path from the position ``q`` (n_q,), which it has at the first of the ``times`` (n_t,).

        ``targets`` (n_t, n, 3): value, rate and acceleration of each prescribed coordinate, then of each component of
        the prescribed outputs. Returns (status, number of times reached, coordinate that is not determined or changes
        most, motion (3, n_t, n_q) with q, q', q'').
        """
        cdef Run run = Run(Function("kinematics", self.prepared), _of_time(inputs, "a path"))
        cdef kg_assembly_time x
        cdef kg_assembly_state states[2]
        cdef int worst = 0, status = 0, n = kg_module_assembly_prescribed(&self.model), k
        cdef Py_ssize_t i, n_t
        cdef double *at
        t_ = _as_array(times, "times")
        if t_.ndim != 1 or not t_.size:
            raise SolveError(f"times have shape {t_.shape}; expected (n_t,)")
        n_t = t_.size
        target = _as_array(targets, "targets")
        if target.shape != (n_t, n, 3):
            raise SolveError(f"targets have shape {target.shape}; expected ({n_t}, {n}, 3)")
        speeds = numpy.zeros((4, MODEL.n_u))
        motion = numpy.full((3, n_t, MODEL.n_q), numpy.nan)
        motion[0, 0] = _as_vector(q, COORDINATES, "q")
        at = _data(motion)
        for i in range(n_t):
            k = i % 2
            states[k].q, states[k].qdot = at + i * MODEL.n_q, at + (n_t + i) * MODEL.n_q
            states[k].qddot = at + (2 * n_t + i) * MODEL.n_q
            states[k].u, states[k].udot = _data(speeds) + 2 * k * MODEL.n_u, _data(speeds) + (2 * k + 1) * MODEL.n_u
            self.point(&x, run, _data(t_)[i], _data(target) + i * 3 * n)
            if i == 0:
                status = kg_module_assembly_start(&x, &states[0], &worst)
            else:
                status = kg_module_assembly_step(&x, _data(t_)[i] - _data(t_)[i - 1], &states[1 - k], &states[k], &worst)
            if status < 0:
                return status, i, worst, motion
        return KG_OK, n_t, worst, motion

    cdef int point(self, kg_assembly_time *x, Run run, double t, const double *target) except -1:
        """Describe one time of the path."""
        x.a, x.w, x.p, x.target = &self.model, &self.arrays, (<Prepared>self.prepared).values, target
        x.at = run.evaluation.at
        x.at.t = t
        if _fill(&run.evaluation.source, t, NULL, 0, run.evaluation.r) == STATUS_PYTHON:
            raise run.error
        return 0
