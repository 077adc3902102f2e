"""Assembles the program of a model from its equations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Final

from kanegen.derivation.algebra import nonzeros, range_space_operations
from kanegen.derivation.control.control_constraints import ControlledMotion
from kanegen.derivation.equations import SQUARE_LIMIT, Equations
from kanegen.derivation.inertia.elimination import FillInError
from kanegen.derivation.speeds import lower_model
from kanegen.errors import BuildError
from kanegen.forms import AUTO, FEW_SPEEDS, FORMS, RECURSIVE_LIMIT, WRITTEN_OUT_LIMIT
from kanegen.graph import Node
from kanegen.model.expressions import symbol_name
from kanegen.program.builder import Functions, FunctionSpec, mass_function
from kanegen.program.functions.consistency import angles
from kanegen.program.functions.contacts import (
    add_contacts,
    contact_table,
    event_table,
    needed_by_events,
    require_speeds,
)
from kanegen.program.functions.controls import control_constraints
from kanegen.program.functions.feedback import needed_by_laws
from kanegen.program.functions.momentum_form import add_momentum_form
from kanegen.program.functions.right_sides import RIGHT_SIDES, right_hand_side
from kanegen.program.functions.switches import add_switches
from kanegen.program.functions.tables import add_tables
from kanegen.program.functions.variations import add_variation, variational_symbols
from kanegen.program.kernels import KERNELS
from kanegen.program.options import BuildOptions, Scope
from kanegen.program.passes.count import KERNEL_WEIGHT, cost_estimate, latency, operation_count
from kanegen.program.passes.lower import hoist
from kanegen.program.recipes import SPECS, reason_against
from kanegen.program.records import Function, Program, Symbols

LARGE = 3000
"""Operations of a right-hand side above which functions that only the user calls are built when they are first used.

They then take longer to derive and to compile than the right-hand side: their operations grow with the square or the
cube of the number of bodies, those of a right-hand side of order n in proportion to it.
"""


def assemble(
    equations: Equations, options: BuildOptions, more: Callable[[Functions], None] = lambda functions: None
) -> tuple[Program, str]:
    """Return the program of the requested functions, with hoisted constants, and the form of its right-hand side.

    ``form="auto"`` selects the form with the least estimated cost. ``more`` adds functions that are not in the
    catalogue.
    """
    form = cheapest(equations) if options.form == AUTO else options.form
    if options.scope in _APART:
        return _APART[options.scope](equations, options, form), form
    of_form = [spec.name for spec in SPECS.values() if form in spec.forms]
    model = equations.model
    names = dict.fromkeys((*options.functions, *of_form, *needed_by_events(model), *needed_by_laws(model)))
    if FORMS[form].momenta:
        require_speeds(model, form)
    functions = Functions(equations, speed_form(equations) if FORMS[form].momenta else form, SPECS, names)
    right_hand_side(functions, stabilized=False)
    if functions.stabilizable:
        right_hand_side(functions, stabilized=True)
    if FORMS[form].momenta:
        add_momentum_form(functions, form)
    later = _deferred(functions, names) if options.scope is Scope.FIRST and _is_large(functions, form) else ()
    reasons = {
        name: reason_against(functions, SPECS[name], form) if name in later else _add(functions, SPECS[name], form)
        for name in names
    }
    add_contacts(functions)
    motion = equations.once(ControlledMotion.of)
    if motion is not None:
        control_constraints(functions, motion)
    table = add_switches(functions)
    more(functions)
    # A reason that requires a derivation costs time, so it is found only for functions that the user requested.
    others = (spec for spec in SPECS.values() if spec.name not in names and not (spec.derives and not spec.forms))
    reasons |= {spec.name: reason_against(functions, spec, form) for spec in others}
    unavailable = tuple((name, reason) for name, reason in reasons.items() if reason is not None)
    deferred = tuple(each for name in later if reasons[name] is None for each in _members(functions, SPECS[name]))
    tables = add_tables(functions)
    program = replace(program_of(functions), switches=table, tables=tables, unavailable=unavailable, deferred=deferred)
    return hoist(replace(program, angles=angles(functions))), form


def _is_large(functions: Functions, form: str) -> bool:
    """Whether functions are left out; momentum forms and controls evaluate most of them."""
    if FORMS[form].momenta or functions.equations.model.control is not None:
        return False
    return operation_count(functions.known["rhs"]) > LARGE


def _deferred(functions: Functions, names: Collection[str]) -> tuple[str, ...]:
    """Return the entries of the catalogue, among ``names``, of which no run needs a function.

    Contacts, events, constraints and projections on integrals need the matrix of the accelerations.
    """
    model = functions.equations.model
    switching = model.resolved_contacts or model.events or model.switches or model.impulses
    acting = ["Q", mass_function(model)] if functions.n_c or switching or "integrals" in names else []
    kept = {"rhs", *acting, *needed_by_events(model), *needed_by_laws(model)}
    specs = (SPECS[name] for name in names if name not in kept and name not in functions.known)
    return tuple(spec.name for spec in specs if spec.on_request and (spec.attribute or spec.name in _MEMBERS))


_MEMBERS: Final[Mapping[str, Callable[[Equations], Iterable[str]]]] = {
    "outputs": lambda equations: equations.outputs,
    "reactions": lambda equations: equations.model.reactions,
}
"""Names of the members of families of functions that can be left out."""


def _members(functions: Functions, spec: FunctionSpec) -> tuple[str, ...]:
    """Return the names of the functions of a catalogue entry."""
    if spec.name not in _MEMBERS:
        return (spec.name,)
    return tuple(f"{spec.prefix}{name}" for name in _MEMBERS[spec.name](functions.equations))


def _apart(equations: Equations, options: BuildOptions, form: str) -> Program:
    """Return the program of functions that were left out of the first one."""
    functions = Functions(equations, form, SPECS, options.functions)
    functions.make_rates = partial(right_hand_side, functions)
    if "rhs" in options.functions:
        right_hand_side(functions, stabilized=False)
        if functions.stabilizable:
            right_hand_side(functions, stabilized=True)
    for name in dict.fromkeys(options.functions):
        _add(functions, SPECS[name], form)
    table, tables = add_switches(functions), add_tables(functions)
    return hoist(replace(program_of(functions), contacts=(), events=(), switches=table, tables=tables))


def _variational(equations: Equations, options: BuildOptions, form: str) -> Program:
    """Return the program of functions of the sensitivities of motions."""
    functions = Functions(equations, form, SPECS, options.functions)
    functions.make_rates = partial(right_hand_side, functions)
    for name in options.functions:
        add_variation(functions, name)
    tables, program = add_tables(functions), program_of(functions)
    symbols = variational_symbols(program.symbols, equations.model, options.functions)
    return hoist(replace(program, symbols=symbols, contacts=(), events=(), tables=tables))


_APART: Final[Mapping[Scope, Callable[[Equations, BuildOptions, str], Program]]] = {
    Scope.LATER: _apart,
    Scope.VARIATIONS: _variational,
}
"""What assembles the programs that are built beside the first one."""


def speed_form(equations: Equations) -> str:
    """Return the form of ``rhs`` in the momentum forms."""
    return "reduced" if equations.is_symmetric else "nonminimal"


def _add(functions: Functions, spec: FunctionSpec, form: str) -> str | None:
    """Add the function or the members of a catalogue entry; return the reason if the model does not have them."""
    reason = reason_against(functions, spec, form)
    if reason is not None:
        return reason
    if spec.members is not None:
        for name, fragment in spec.members(functions).items():
            functions.add(f"{spec.prefix}{name}", fragment, spec.summary.format(name))
    elif spec.make is not None:
        functions.function(spec.name)
    return None


def program_of(functions: Functions) -> Program:
    """Return the program of all functions added so far."""
    equations = functions.equations
    model = equations.model
    symbols = Symbols(
        tuple(map(symbol_name, model.coordinates)),
        tuple(map(symbol_name, model.speeds)),
        tuple(item.name for item in model.inputs),
        tuple(map(str, model.parameters)),
        equations.gain_names,
        tuple(map(symbol_name, model.states)),
        model.contact_rows,
        model.free_controls,
    )
    made = tuple(functions.known.values())
    return Program(model.name, equations.graph, symbols, made, contacts=contact_table(model), events=event_table(model))


def cheapest(equations: Equations) -> str:
    """Return the candidate form whose right-hand side has the least estimated cost.

    If no candidate accepts the model, return the first one: building it then reports the reason.
    """
    return selected(equations)[0]


def selected(equations: Equations) -> tuple[str, Equations]:
    """Return the cheapest form, and equations of the same model in which its right-hand side may be derived already.

    Forms that solve large systems are derived only if their solve alone does not cost more than another form.
    """
    candidates = [
        form.name for form in FORMS.values() if form.candidate and (equations.is_symmetric or not form.symmetric)
    ]
    recursive = [form for form in candidates if FORMS[form].recursive]
    known = _recursion_estimate(equations, recursive)
    costs = {} if known is None else known.costs
    least = {form: _least_cost(equations, form, known) for form in candidates if form not in recursive}
    for form in sorted(least, key=least.__getitem__):
        if costs and least[form] > min(costs.values()):
            continue
        if not (FORMS[form].written_out and _is_long(equations)):
            costs |= form_costs(equations, [form])
    ordered = [form for form in candidates if form in costs]
    form = min(ordered, key=costs.__getitem__) if costs else candidates[0]
    return form, equations if known is None or form not in recursive else known.equations


@dataclass(frozen=True)
class RecursionEstimate:
    """What the recursive forms tell before the other forms are derived.

    ``equations``: those from which it was made. ``costs``: those of the recursive forms. ``forces``: the cost of P,
    which the other forms evaluate. ``couplings``: the nonzeros that the lower triangle of Q can have, of which some can
    cancel.
    """

    equations: Equations
    costs: dict[str, float]
    forces: float
    couplings: Sequence[Set[int]]


def _recursion_estimate(equations: Equations, forms: Iterable[str]) -> RecursionEstimate | None:
    """Return the estimate, or None for few speeds, much fill-in, and models that recursive forms do not accept.

    The estimate is derived on another graph, because new nodes can change the order in which others are computed.
    """
    if len(equations.system.u) <= FEW_SPEEDS:
        return None
    apart = Equations(lower_model(equations.model))
    unknowns = len(equations.system.u) + len(equations.constraints.rows)
    try:
        couplings = apart.articulated(RECURSIVE_LIMIT * unknowns).couplings
    except (BuildError, FillInError):
        return None
    costs = {
        form: max(cost_estimate(*function), latency(*function))
        for form, function in right_sides(apart, forms, fallback=False).items()
    }
    functions = Functions(apart, next(iter(costs)), SPECS)
    forces = cost_estimate(functions.function("P"), hoist(program_of(functions)).constants)
    return RecursionEstimate(apart, costs, forces, couplings)


def _is_long(equations: Equations) -> bool:
    """Whether the range-space system has too many nonzeros for straight-line code."""
    lower = nonzeros([row[: i + 1] for i, row in enumerate(equations.left_side)])
    parts = range_space_operations(lower, nonzeros([row.J for row in equations.constraints.rows]))
    return any(total > WRITTEN_OUT_LIMIT for total in accumulate(parts))


def _least_cost(equations: Equations, form: str, known: RecursionEstimate | None) -> float:
    """Return a lower bound of the cost of a form, known before it is derived: that of its solve, and of P if known."""
    n_u = len(equations.system.u)
    n_i = n_u - len(equations.constraints.rows)
    if FORMS[form].written_out and known is not None:
        rows = nonzeros([row.J for row in equations.constraints.rows])
        return known.forces + sum(range_space_operations(known.couplings, rows)) / 2
    kernels = {"reduced": ("cholesky_solve", n_i), "nonminimal": ("lu_solve", n_u)}
    kernel, n = kernels.get(form, ("", 0))
    # Deriving a small system takes no time, and straight-line code may solve it.
    return KERNEL_WEIGHT * KERNELS[kernel].operations(n) if n > SQUARE_LIMIT else 0.0


def form_costs(equations: Equations, forms: Iterable[str] = tuple(RIGHT_SIDES)) -> dict[str, float]:
    """Return `cost_estimate` of the right-hand side in each form, without the forms that do not accept the model."""
    return {form: cost_estimate(*function) for form, function in right_sides(equations, forms).items()}


def right_sides(
    equations: Equations, forms: Iterable[str], fallback: bool = True
) -> dict[str, tuple[Function, tuple[Node, ...]]]:
    """Return the right-hand side and its constants in each form, without the forms that do not accept the model."""
    found = {}
    for form in forms:
        functions = Functions(equations, form, SPECS, ("rhs",))
        try:
            function = right_hand_side(functions, stabilized=False, fallback=fallback)
        except BuildError:
            continue
        found[form] = function, hoist(program_of(functions)).constants
    return found
