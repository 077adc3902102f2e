# Runs of models with contacts and events (kg_hybrid.h): memory, callbacks and records of events and phases.

cdef extern from "module_runtime.h" nogil:
{{ structs(("kg_record", "kg_hybrid"), known=("kg_point", "kg_function", "kg_model", "kg_stepper", "kg_ode", "kg_impulse_rows", "kg_contacts")) }}
    size_t kg_module_hybrid_memory(kg_hybrid *)
    int kg_module_hybrid_open(kg_hybrid *, void *)
    int kg_module_hybrid_start(kg_run *, kg_hybrid *, const kg_stepper_options *, double *, double *)
    int kg_module_hybrid_forces(kg_hybrid *, const int *, const double *, double, const double *, double *)
    int kg_module_hybrid_mode(const kg_hybrid *, int)

EVENTS = tuple([MODEL.events[i].name.decode() for i in range(MODEL.n_events)])
EVENT_KINDS = tuple([kg_module_record_name(i).decode() for i in range(KG_RECORD_KINDS)])
IRREVERSIBLE_CONTACTS = tuple([
    MODEL.contacts[i].name.decode() for i in range(MODEL.n_contacts)
    if MODEL.contacts[i].directions > 0 or MODEL.contacts[i].law in (KG_LAW_RESTITUTION, KG_LAW_LATCH)
])
IRREVERSIBLE_EVENTS = tuple([
    MODEL.events[i].name.decode() for i in range(MODEL.n_events)
    if MODEL.events[i].impulse >= 0 or MODEL.events[i].n_impose or MODEL.events[i].n_remove
])


cdef int _hybrid_inputs(void *host, const kg_point *at, double *r) noexcept nogil:
    return _inputs_at((<RunHost *>host).evaluation, at.t, at.q)  # u and s follow q


cdef int _hybrid_record(void *host, const kg_record *record) noexcept nogil:
    """Store a row: time, kind, index, q, (u, s) before, (u, s) after, impulses of the contact rows."""
    cdef int n_q = MODEL.n_q, n_u = MODEL.n_u + N_S, n_rows = MODEL.n_rows
    cdef double *row = _grow(&(<RunHost *>host).records, 3 + n_q + 2 * n_u + n_rows)
    if row == NULL:
        return STATUS_NO_MEMORY
    row[0], row[1], row[2] = record.t, record.kind, record.index
    memcpy(row + 3, record.y_before, (n_q + n_u) * sizeof(double))
    memcpy(row + 3 + n_q + n_u, record.y_after + n_q, n_u * sizeof(double))
    memcpy(row + 3 + n_q + 2 * n_u, record.impulse, n_rows * sizeof(double))
    return KG_OK


cdef int _begin_phase(void *host) noexcept nogil:
    """Store a row: time, modes, directions of slip; only if they differ from the last row."""
    cdef RunHost *h = <RunHost *>host
    cdef kg_contacts *contacts = &(<kg_hybrid *>h.hybrid).contacts
    cdef int n = MODEL.n_contacts, i
    cdef double *row = _grow(&h.phases, 1 + 3 * n)
    if row == NULL:
        return STATUS_NO_MEMORY
    row[0] = h.stepper.t
    for i in range(n):
        row[1 + i] = kg_module_hybrid_mode(<kg_hybrid *>h.hybrid, i)
    if n:
        memcpy(row + 1 + n, contacts.direction, 2 * n * sizeof(double))
    if h.n_phases and memcmp(row + 1, row - 3 * n, 3 * n * sizeof(double)) == 0:
        h.phases.count -= 1 + 3 * n
    else:
        h.n_phases += 1
    return KG_OK


cdef class HybridRun(Run):
    """A run that stops at events and changes the modes of contacts there."""

    cdef kg_hybrid hybrid
    cdef kg_impulse_rows bilateral
    cdef void *hybrid_memory
    cdef object watched, start_modes

    def __dealloc__(self):
        free(self.hybrid_memory)

    cdef int watch(self, events, modes) except -1:
        """Detect the events with these indices; start in ``modes`` (contact to mode) if they are consistent."""
        flags = numpy.zeros(MODEL.n_events + 1, dtype=numpy.intc)
        indices, n = _indices(events, MODEL.n_events, "events")
        flags[indices[:n]] = 1
        if not isinstance(modes, dict):
            raise SolveError(f"modes is {_shown(modes)}; expected a dict of modes by the index of the contact")
        for i, mode in modes.items():
            _whole(i, "index in modes", 0, MODEL.n_contacts - 1)
            _whole(mode, f"modes[{i}]", 0, KG_SLIP)
        self.watched, self.start_modes = flags, modes
        return 0

{% if has.implicit_methods %}
    cdef int linearize(self, str method) except -1:
        """Provide the compiled Jacobian, if there is one, for open contacts; closed contacts use differences."""
        if {"jacobian_q", "jacobian_u", "jacobian_t"} | ({"jacobian_s"} if N_S else set()) <= FUNCTIONS.keys():
            Run.linearize(self, method)
        return 0

{% endif %}
    cdef int start(self, const kg_stepper_options *options, double *y0) except *:
        cdef kg_hybrid *h = &self.hybrid
        cdef int status
        self.host.hybrid, self.run.begin_phase = h, _begin_phase
        h.model, h.p, h.stepper, h.plain = MODEL, self.evaluation.p, &self.stepper, self.ode
        h.r, h.free = self.evaluation.r, self.evaluation.at.free
        if self.inputs.kind != INPUT_CONSTANT or self.controls:
            h.inputs = _hybrid_inputs
        h.accept, h.record, h.host = self.run.accept, _hybrid_record, &self.host
        h.watched = <int *>PyArray_DATA(<PyArrayObject *>self.watched)
        if any([MODEL.events[i].impulse >= 0 and self.watched[i] for i in range(MODEL.n_events)]):
            _fill_impulse_rows(&self.bilateral)
            h.bilateral = &self.bilateral
        self.hybrid_memory = malloc(kg_module_hybrid_memory(h))
        if self.hybrid_memory == NULL:
            raise MemoryError
        if kg_module_hybrid_open(h, self.hybrid_memory) < 0:
            raise SolveError(
                f"the model {NAME} was built without functions of its contacts and events: name contacts, gaps and "
                "events in functions= of kanegen.build"
            )
        for i, mode in self.start_modes.items():
            h.contacts.mode[i] = mode
        h.contacts.prefer_present = len(self.start_modes) > 0
        status = kg_module_hybrid_start(&self.run, h, options, y0, self.stepper_memory())
        h.contacts.prefer_present = 0
        return status

    cdef RunResult outcome(self, int status):
        cdef RunResult result = Run.outcome(self, status)
        n_q, n_u, n_c = MODEL.n_q, MODEL.n_u + N_S, MODEL.n_contacts
        width = 3 + n_q + 2 * n_u + MODEL.n_rows
        phases = _to_array(&self.host.phases, self.host.n_phases, 1 + 3 * n_c)
        result.hybrid = HybridRecords(
            events=_to_array(&self.host.records, self.host.records.count // width, width),
            phases=phases[:, :1 + n_c],
            forces=self.forces(phases),
        )
        if self.error is not None:  # for example from a Python input during the computation of the forces
            result.error, result.status = self.error, KG_INTERRUPTED
        result.conflict = _conflict(&self.hybrid.contacts, status)
        if status < 0 and self.hybrid.culprit >= 0:
            result.culprit = f"contact {CONTACTS[self.hybrid.culprit]!r}"
        elif status < 0 and self.hybrid.culprit_event >= 0:
            result.culprit = f"event {EVENTS[self.hybrid.culprit_event]!r}"
        return result

    cdef object forces(self, phases):
        """Multipliers of the contact rows (n_t, n_rows) at the stored times, in the modes of the run."""
        cdef size_t i, n_t = self.host.t.count, width = phases.shape[1], place
        cdef int n_rows = MODEL.n_rows, n_c = MODEL.n_contacts, k
        cdef const double *row
        cdef const double *t = self.host.t.data
        cdef const double *y = self.host.y.data
        cdef double *rows
        result = numpy.zeros((n_t, n_rows))
        modes = numpy.zeros(n_c + 1, dtype=numpy.intc)
        cdef int *mode = <int *>PyArray_DATA(<PyArrayObject *>modes)
        if n_rows == 0 or self.hybrid_memory == NULL:
            return result
        rows = <double *>_data(result)
        for i in range(n_t):
            self.recall(t[i])
            place = <size_t>self.host.places.data[i]
            row = _data(phases) + place * width
            for k in range(n_c):
                mode[k] = <int>row[1 + k]
            if not kg_module_hybrid_forces(
                &self.hybrid, mode, row + 1 + n_c, t[i], y + i * self.n, rows + i * n_rows
            ) >= 0:
                for k in range(n_rows):
                    rows[i * n_rows + k] = float("nan")
        return result


class HybridRecords:
    """Records of a run with contacts or events.

    ``events`` (n, 3 + n_q + 2 (n_u + n_s) + n_rows): time, index of the kind in EVENT_KINDS, index of event or contact,
    q, u and s before, u and s after, impulses of the contact rows. ``phases`` (m, 1 + n_contacts): start, modes. ``forces`` (n_t, n_rows):
    multipliers of the contact rows at the stored times.
    """

    def __init__(self, **fields):
        self.__dict__.update(fields)
