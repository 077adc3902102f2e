# Runs of models with contacts and events (kg_hybrid.h): the loop without the GIL, records of what happened.

cdef extern from "module_runtime.h" nogil:
    enum:
        KG_AT_EVENT
        KG_AT_STOP
    ctypedef struct kg_record:
        int kind
        int index
        double t
        const double *y_before
        const double *y_after
        const double *impulse
    ctypedef struct kg_hybrid:
        const kg_model *model
        const double *p
        kg_stepper *stepper
        kg_ode plain
        double *r
        int (*inputs)(void *, double, const double *, const double *, double *) noexcept nogil
        int (*accept)(void *, int) noexcept nogil
        int (*record)(void *, const kg_record *) noexcept nogil
        void *host
        const int *watched
        const kg_impulse_rows *blows
        double t_stop
        kg_contacts contacts
        int culprit
        int culprit_event
    size_t kg_module_hybrid_memory(kg_hybrid *)
    int kg_module_hybrid_open(kg_hybrid *, void *)
    int kg_module_hybrid_start(kg_hybrid *, const kg_stepper_options *, double, const double *, double, double *)
    int kg_module_hybrid_step(kg_hybrid *)
    int kg_module_hybrid_react(kg_hybrid *)
    int kg_module_hybrid_forces(kg_hybrid *, const int *, const double *, double, const double *, double *)
    int kg_module_hybrid_flat_guard(const kg_hybrid *)

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


cdef struct HybridHost:
    # What the callbacks of a run need without Python.
    Evaluation *evaluation
    kg_projection *projection
    kg_stepper *stepper
    Buffer *records


cdef int _hybrid_inputs(void *host, double t, const double *q, const double *u, double *r) noexcept nogil:
    return _inputs_at((<HybridHost *>host).evaluation, t, q)  # u follows q


cdef int _hybrid_accept(void *host, int outcome) noexcept nogil:
    cdef HybridHost *h = <HybridHost *>host
    return min(_project(h.evaluation, h.projection, h.stepper, outcome), KG_OK)


cdef int _hybrid_record(void *host, const kg_record *record) noexcept nogil:
    """A row: time, kind, index, q, u before, u after, impulses of the contact rows."""
    cdef int n_q = MODEL.n_q, n_u = MODEL.n_u, n_rows = MODEL.n_rows
    cdef double *row = _grow((<HybridHost *>host).records, 3 + n_q + 2 * n_u + n_rows)
    if row == NULL:
        return STATUS_NO_MEMORY
    row[0], row[1], row[2] = record.t, record.kind, record.index
    memcpy(row + 3, record.y_before, (n_q + n_u) * sizeof(double))
    memcpy(row + 3 + n_q + n_u, record.y_after + n_q, n_u * sizeof(double))
    memcpy(row + 3 + n_q + 2 * n_u, record.impulse, n_rows * sizeof(double))
    return KG_OK


cdef class HybridRun(Run):
    """A run that stops at events and changes the modes of contacts there."""

    cdef kg_hybrid hybrid
    cdef HybridHost host
    cdef kg_impulse_rows blows
    cdef void *hybrid_memory
    cdef Buffer records, phases, places  # places: the phase of each state that is stored
    cdef size_t n_phases
    cdef object watched, start_modes

    def __dealloc__(self):
        free(self.hybrid_memory)
        free(self.records.data)
        free(self.phases.data)
        free(self.places.data)

    cdef int watch(self, events, modes) except -1:
        """Look for these events of the model, indices; start in these modes (contact to mode) where they agree."""
        flags = numpy.zeros(MODEL.n_events + 1, dtype=numpy.intc)
        flags[list(events)] = 1
        self.watched, self.start_modes = flags, modes
        return 0

    cdef int linearize(self) except -1:
        """Provide the Jacobian of open contacts where it was compiled; that of closed ones are differences."""
        if {"jacobian_q", "jacobian_u", "jacobian_t"} <= FUNCTIONS.keys():
            Run.linearize(self)
        return 0

    cdef int begin(self, const kg_stepper_options *options, double t0, const double *y0, double end) except *:
        cdef kg_hybrid *h = &self.hybrid
        cdef int status
        self.host.evaluation, self.host.projection = &self.evaluation, &self.projection
        self.host.stepper, self.host.records = &self.stepper, &self.records
        h.model, h.p, h.stepper, h.plain, h.r = MODEL, self.evaluation.p, &self.stepper, self.ode, self.evaluation.r
        if self.inputs.kind != INPUT_CONSTANT or self.control is not None:
            h.inputs = _hybrid_inputs
        if self.projection.every:
            h.accept = _hybrid_accept
        h.record, h.host = _hybrid_record, &self.host
        h.watched = <int *>PyArray_DATA(<PyArrayObject *>self.watched)
        h.t_stop = end  # of a sample; at the end of the run it means nothing
        if any([MODEL.events[i].impulse >= 0 and self.watched[i] for i in range(MODEL.n_events)]):
            _fill_impulse_rows(&self.blows)
            h.blows = &self.blows
        self.hybrid_memory = malloc(kg_module_hybrid_memory(h))
        if self.hybrid_memory == NULL:
            raise MemoryError
        if kg_module_hybrid_open(h, self.hybrid_memory) < 0:
            raise SolveError(
                f"the model {NAME} was built without the functions its contacts and events need: name contacts, gaps and "
                "events in functions= of kanegen.build"
            )
        for i, mode in self.start_modes.items():
            h.contacts.mode[i] = mode
        h.contacts.prefer_present = len(self.start_modes) > 0
        status = kg_module_hybrid_start(h, options, t0, y0, self.t_final, self.stepper_memory())
        h.contacts.prefer_present = 0
        if self.stepper.y == NULL:  # it did not come so far
            self.stepper.t, self.stepper.y = t0, <double *>y0
        return status

    cdef int store_start(self, double t0, const double *y0) noexcept nogil:
        """The state before and after what happens at the start."""
        cdef int stored = self.note_phase()
        if stored == KG_OK and self.t_eval == NULL:
            stored = self.store(t0, y0)
        return stored if stored != KG_OK else self.store_after()

    cdef int store_before(self, int status) noexcept nogil:
        """The last step; with t_eval the times it has passed, without that of an event."""
        cdef size_t all_of_them = self.n_eval
        cdef int stored
        if self.t_eval == NULL:
            stored = self.store(self.stepper.t, self.stepper.y)
        else:
            if status == KG_AT_EVENT:
                self.n_eval = self.next_eval
                while self.n_eval < all_of_them and self.direction * (self.t_eval[self.n_eval] - self.stepper.t) < 0.0:
                    self.n_eval += 1
            stored = self.store_requested()
            self.n_eval = all_of_them
        return stored if stored != KG_OK else self.note_places()

    cdef int store_after(self) noexcept nogil:
        """The state after an event, where it has jumped or was asked for."""
        cdef int stored = KG_OK
        if self.t_eval == NULL:
            if memcmp(self.y.data + self.y.count - self.n, self.stepper.y, self.n * sizeof(double)) != 0:
                stored = self.store(self.stepper.t, self.stepper.y)
        while stored == KG_OK and self.next_eval < self.n_eval and self.t_eval[self.next_eval] == self.stepper.t:
            stored = self.store(self.stepper.t, self.stepper.y)
            self.next_eval += 1
        return stored if stored != KG_OK else self.note_places()

    cdef int note_places(self) noexcept nogil:
        """The present phase is that of all states stored since the last call."""
        cdef double *place
        while self.places.count < self.t.count:
            place = _grow(&self.places, 1)
            if place == NULL:
                return STATUS_NO_MEMORY
            place[0] = self.n_phases - 1
        return KG_OK

    cdef int note_phase(self) noexcept nogil:
        """A row: time, modes, directions of slip; where they differ from those of the last row."""
        cdef int n = MODEL.n_contacts, i
        cdef double *row = _grow(&self.phases, 1 + 3 * n)
        if row == NULL:
            return STATUS_NO_MEMORY
        row[0] = self.stepper.t
        for i in range(n):
            row[1 + i] = self.hybrid.contacts.mode[i]
        if n:
            memcpy(row + 1 + n, self.hybrid.contacts.direction, 2 * n * sizeof(double))
        if self.n_phases and memcmp(row + 1, row - 3 * n, 3 * n * sizeof(double)) == 0:
            self.phases.count -= 1 + 3 * n
        else:
            self.n_phases += 1
        return KG_OK

    cdef int react(self, int status) noexcept nogil:
        """What happens where the run stands; at the end of a sample the controls are those of the state from now on.

        Integrals of motion have other values after a jump.
        """
        cdef ControlLoop *c
        cdef int sampled = KG_OK
        if status == KG_AT_STOP:
            c = <ControlLoop *>self.evaluation.control
            sampled = self.sample(self.stepper.t, self.stepper.y)
            self.hybrid.t_stop = _sample_end(
                self.t_first, self.t_final, self.control.sample_time, <long long>(self.samples.count // (c.n + 1)) - 1
            )
        if sampled == STATUS_NO_MEMORY:
            return sampled
        if sampled < 0:
            self.stepper.rhs_status = sampled
            return KG_RHS_FAILED
        status = kg_module_hybrid_react(&self.hybrid)
        if status >= 0 and self.projection.every:
            sampled = self.renew()
        return sampled if sampled < 0 else status

    cdef int advance(self) noexcept nogil:
        cdef double start = kg_module_seconds()
        cdef double elapsed
        cdef int status = KG_OK, stored = KG_OK, count = 0
        while status == KG_OK and stored == KG_OK:
            status = kg_module_hybrid_step(&self.hybrid)
            if status < 0:
                return status
            stored = self.store_before(status)
            if stored == KG_OK and self.dense_rows:
                stored = self.store_dense()
            while stored == KG_OK and (status == KG_AT_EVENT or status == KG_AT_STOP):
                status = self.react(status)
                if status < 0:
                    return status
                stored = self.note_phase()
                if stored == KG_OK:
                    stored = self.store_after()
            if stored == KG_OK and status == KG_FINISHED and self.samples.count:
                stored = self.sample(self.stepper.t, self.stepper.y)
            count += 1
            if count % 8 == 0:
                elapsed = kg_module_seconds() - start
                if elapsed > 0.02 or elapsed < 0.0:
                    break
        return status if stored == KG_OK else stored

    cdef object outcome(self, int status):
        result = Run.outcome(self, status)
        n_q, n_u, n_c = MODEL.n_q, MODEL.n_u, MODEL.n_contacts
        width = 3 + n_q + 2 * n_u + MODEL.n_rows
        phases = _to_array(&self.phases, (self.n_phases, 1 + 3 * n_c))
        result.hybrid = HybridRecords(
            events=_to_array(&self.records, (self.records.count // width, width)),
            phases=phases[:, :1 + n_c],
            forces=self.forces(result.t, result.y, phases),
        )
        if self.error is not None:  # also of a Python input, when the forces were computed
            result.error, result.status = self.error, KG_INTERRUPTED
        flat = kg_module_hybrid_flat_guard(&self.hybrid)
        if status >= 0 and flat >= 0 and not MODEL.events[flat].multipliers:
            result.flat_guard = EVENTS[flat]
        result.conflict = _conflict(&self.hybrid.contacts, status)
        if status < 0 and self.hybrid.culprit >= 0:
            result.culprit = f"contact {CONTACTS[self.hybrid.culprit]!r}"
        elif status < 0 and self.hybrid.culprit_event >= 0:
            result.culprit = f"event {EVENTS[self.hybrid.culprit_event]!r}"
        return result

    cdef object samples_of(self, times):
        """Index of the sample that was held at each time; None without samples."""
        if self.samples.count == 0:
            return None
        width = (<ControlLoop *>self.evaluation.control).n + 1
        begins = _to_array(&self.samples, (self.samples.count // width, width))[:, 0]
        return (numpy.searchsorted(begins, times, side="right") - 1).astype(numpy.float64)

    cdef object forces(self, times, states, phases):
        """Multipliers of the contact rows (n_t, n_rows) at the stored times, in the modes the run had there."""
        cdef size_t i, n_t = times.size, width = phases.shape[1], place
        cdef int n_rows = MODEL.n_rows, n_c = MODEL.n_contacts, k
        cdef const double *row
        cdef const double *y = _data(states)
        cdef double *found
        cdef ControlLoop *c
        result, held = numpy.zeros((n_t, n_rows)), self.samples_of(times)
        modes = numpy.zeros(n_c + 1, dtype=numpy.intc)
        cdef int *mode = <int *>PyArray_DATA(<PyArrayObject *>modes)
        if n_rows == 0 or self.hybrid_memory == NULL:
            return result
        found = <double *>_data(result)
        for i in range(n_t):
            if held is not None:
                c = <ControlLoop *>self.evaluation.control
                memcpy(c.tau, self.samples.data + <size_t>_data(held)[i] * (c.n + 1) + 1, c.n * sizeof(double))
            place = <size_t>self.places.data[i]
            row = _data(phases) + place * width
            for k in range(n_c):
                mode[k] = <int>row[1 + k]
            if not kg_module_hybrid_forces(
                &self.hybrid, mode, row + 1 + n_c, _data(times)[i], y + i * self.n, found + i * n_rows
            ) >= 0:
                for k in range(n_rows):
                    found[i * n_rows + k] = float("nan")
        return result


class HybridRecords:
    """What a run with contacts or events adds to an Outcome.

    ``events`` (n, 3 + n_q + 2 n_u + n_rows): time, index into EVENT_KINDS, index of event or contact, q, u before, u
    after, impulses of the contact rows. ``phases`` (m, 1 + n_contacts): start, modes. ``forces`` (n_t, n_rows):
    multipliers of the contact rows at the stored times.
    """

    def __init__(self, **fields):
        self.__dict__.update(fields)
