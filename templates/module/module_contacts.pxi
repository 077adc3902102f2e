# Contacts at a state: their modes, forces and accelerations (kg_contact.h).

cdef extern from "module_runtime.h" nogil:
    enum:
        KG_NO_MODE
        KG_SEVERAL_MODES
{{ structs(("kg_contact_sections", "kg_mode_search", "kg_contacts"), known=("kg_function", "kg_model")) }}
    size_t kg_module_contacts_work(const kg_model *)
    int kg_module_contacts_integers(const kg_model *)
    int kg_module_contacts_start(kg_contacts *, const kg_model *, const double *, int *, double *)
    int kg_module_contacts_measure(kg_contacts *, const kg_point *, double *, const double *)
    int kg_module_contacts_settle(kg_contacts *, const kg_point *)
    int kg_module_contacts_after_impulse(kg_contacts *, const kg_point *, double *, const double *, double *, double *)
    int kg_module_contacts_rhs(kg_contacts *, const kg_point *, double *, double *)

CONTACTS = tuple([MODEL.contacts[i].name.decode() for i in range(MODEL.n_contacts)])


def contact_layout():
    """For each contact: row of the gap, or -1; first row of the slip velocity, or -1; number of slip rows."""
    return [
        (MODEL.contacts[i].normal, MODEL.contacts[i].tangent, MODEL.contacts[i].directions)
        for i in range(MODEL.n_contacts)
    ]


class Conflict:
    """Indices of contacts whose laws no forces satisfy; whether at an impact; whether friction is the reason."""

    def __init__(self, contacts, impact, friction):
        self.contacts, self.impact, self.friction = contacts, impact, friction


cdef object _conflict(const kg_contacts *c, int status):
    if status != KG_NO_MODE:
        return None
    contacts = tuple([i for i in range(MODEL.n_contacts) if c.search.conflict[i]])
    return Conflict(contacts, bool(c.at_impact), bool(c.search.friction))


cdef object _copied(const double *values, int n):
    array = numpy.empty(n)
    memcpy(_data(array), values, n * sizeof(double))
    return array


cdef object _contact_memory():
    return (
        numpy.zeros(kg_module_contacts_integers(MODEL) + 1, dtype=numpy.intc),
        numpy.zeros(kg_module_contacts_work(MODEL) + 1),
    )


def contacts_after_impulse(prepared, t, q, u_before, u, r, s=None):
    """The reaction of the contacts to an impulse that has changed the speeds from ``u_before`` to ``u``.

    Returns the status of kg_contacts_after_impulse(); if it is negative, the index of the contact that failed and a
    `Conflict` or None, else None; the speeds after (n_u,) and the impulses of the contact rows (n_rows,).
    """
    cdef kg_contacts c
    cdef kg_point at
    cdef int status
    _require_prepared(prepared)
    modes, work = _contact_memory()
    part, impulses, before = numpy.zeros(MODEL.n_rows), numpy.zeros(MODEL.n_rows), _as_vector(u_before, SPEEDS, "u_before")
    _check_finite(before, SPEEDS, "u_before")
    arguments = _read_state(t, q, u, r, s, &at)
    after = arguments[2].copy()
    at.u = _data(after)
    status = kg_module_contacts_start(
        &c, MODEL, (<Prepared>prepared).values, <int *>PyArray_DATA(<PyArrayObject *>modes), _data(work)
    )
    if status >= 0:
        status = kg_module_contacts_after_impulse(
            &c, &at, _data(after), _data(before), _data(part), _data(impulses)
        )
    return status, (c.culprit, _conflict(&c, status)) if status < 0 else None, after, impulses


def contacts(prepared, t, q, u, r, atol=None, s=None):
    """The contacts at a state, with consistent modes; gaps and rates are zero within the tolerances ``atol`` of (q, u).

    Returns the status of kg_contacts_settle(); if it is negative, the index of the contact that failed and a `Conflict`
    or None, else None; modes (n_contacts,); values, rates and multipliers of the contact rows (n_rows,); q' and u'.
    """
    cdef kg_contacts c
    cdef kg_point at
    cdef int status
    cdef double *tolerances = NULL
    _require_prepared(prepared)
    arguments = _read_state(t, q, u, r, s, &at)
    modes, work = _contact_memory()
    qdot, udot, state = numpy.zeros(MODEL.n_q), numpy.zeros(MODEL.n_u), numpy.concatenate(arguments[1:3])
    at.q, at.u = _data(state), _data(state) + MODEL.n_q
    if atol is not None:
        atol = _as_vector(atol, (*COORDINATES, *SPEEDS), "atol")
        tolerances = _data(atol)
    status = kg_module_contacts_start(
        &c, MODEL, (<Prepared>prepared).values, <int *>PyArray_DATA(<PyArrayObject *>modes), _data(work)
    )
    if status >= 0 and tolerances != NULL:
        status = kg_module_contacts_measure(&c, &at, _data(state), tolerances)
    if status >= 0:
        status = kg_module_contacts_settle(&c, &at)
    if status >= 0:
        status = kg_module_contacts_rhs(&c, &at, _data(qdot), _data(udot))
    rows = (
        _copied(c.s.value, MODEL.n_rows), _copied(c.s.rate, MODEL.n_rows), _copied(c.lambda_, MODEL.n_rows)
    )
    return status, (c.culprit, _conflict(&c, status)) if status < 0 else None, modes[:MODEL.n_contacts], *rows, qdot, udot
