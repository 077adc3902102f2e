"""Functions of the momentum forms and of Hamilton's equations: the state is (q, mom) in place of (q, u).

The functions receive the momenta in the argument u, so that an integrator of q' and u' also integrates q' and mom'.
In all quantities, the speeds that follow from the momenta replace u.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from kanegen.derivation.algebra import SINGULAR_LIMIT, solve_symmetric
from kanegen.derivation.equations import SQUARE_LIMIT
from kanegen.derivation.forms import complete, matrix_vector
from kanegen.derivation.momenta import Momenta, ReducedMomenta
from kanegen.graph import Node, substitute
from kanegen.program.builder import Fragment, Functions, Maker, contain_accelerations, lower_triangle
from kanegen.program.functions.right_sides import constrained_solve, nonminimal, reduced

At: TypeAlias = Callable[[Sequence[Node]], Sequence[Node]]
Accelerations: TypeAlias = Callable[[Functions, Fragment, bool, At], Sequence[Node]]

STATE = "argument u holds the momenta"


def momenta_quantity(name: str) -> Maker:
    """Return the maker of a quantity of `Momenta`."""

    def make(f: Functions) -> Fragment:
        quantity = getattr(Momenta(f.equations), name)
        return f.fragment().output(quantity.nodes, quantity.shape)

    return make


def reduced_momentum(f: Functions) -> Fragment:
    form, s = Momenta(f.equations).reduced, f.fragment()
    s.require(*_divisors(form))
    s.guard()
    return s.output(form.momenta)


def no_reduced_momentum(f: Functions) -> str | None:
    """Return the reason why there are no reduced momenta, or None."""
    return None if Momenta(f.equations).reduced.momenta else "the constraints determine all its speeds"


def add_momentum_form(f: Functions, form: str) -> None:
    """Add the functions that integrate a momentum form: ``speeds_from_momentum`` and ``momentum_rhs``.

    Raises BuildError if the form does not exist, because of constraints without a linear velocity level (reduced), a
    massless speed (unreduced, Hamilton) or speeds other than q' (Hamilton).
    """
    momenta, s = Momenta(f.equations), f.fragment()
    if form == "hamilton":
        momenta.require_canonical()
    if form != "momentum":
        momenta.require_mass(form)
    speeds_of = _reduced_speeds if form == "momentum" else _unreduced_speeds
    s.output(speeds_of(f, s, momenta), title="speeds")
    f.add("speeds_from_momentum", s, f"speeds u of the momenta ({STATE})")
    if form == "momentum":
        s = f.fragment()
        at = partial(_with_speeds, f, _reduced_speeds(f, s, momenta))
        rate, sdot = list(momenta.reduced.rate), f.equations.sdot.nodes
        if _need_accelerations(f):
            udot = _accelerations(f)(f, s, False, at)
            sdot = _with_accelerations(f, udot, sdot)
            rate = [x + y for x, y in zip(rate, momenta.reduced_added_force(udot), strict=True)]
        rates = [*f.equations.qdot.nodes, *rate, *sdot]
        s.output(at(rates), title="q' and mom' = e + ehat")
        f.add("momentum_rhs", s, f"q' and mom' (reduced momentum form, {STATE})")
        return
    for stabilized in (False, True) if f.stabilizable else (False,):
        _add_unreduced(f, momenta, form, stabilized)


def _with_speeds(f: Functions, speeds: Sequence[Node], nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes with u replaced by these speeds."""
    return substitute(nodes, dict(zip(f.equations.system.u, speeds, strict=True)))


def _with_accelerations(f: Functions, udot: Sequence[Node], nodes: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(substitute(nodes, dict(zip(f.equations.system.udot, udot, strict=True))))


def _need_accelerations(f: Functions) -> bool:
    """Return whether loads or the rates of states contain u'."""
    return f.equations.model.is_accelerated or contain_accelerations(f.equations.sdot.nodes)


# -- speeds from momenta ----------------------------------------------------------------------------------------


def _unreduced_speeds(f: Functions, s: Fragment, momenta: Momenta) -> Sequence[Node]:
    """Return u of ``Q u = mom - N``."""
    lower = [row[: i + 1] for i, row in enumerate(momenta.mass_matrix)]
    right = [mom - x for mom, x in zip(f.equations.system.u, momenta.N, strict=True)]
    return _solved(s, lower, right, "Q u = mom - N")


def _reduced_speeds(f: Functions, s: Fragment, momenta: Momenta) -> Sequence[Node]:
    """Return u_I of ``A2 Q A2^T u_I = mom - A2 (Q [0; Bv] + N)``, then ``u_D = A u_I + Bv``."""
    form = momenta.reduced
    right = [mom - x for mom, x in zip(f.equations.system.u[: len(form.offset)], form.offset, strict=True)]
    s.require(*_divisors(form))
    independent = _solved(s, form.lower, right, "A2 Q A2^T u_I = mom - A2 (Q [0; Bv] + N)")
    return complete(f.graph, form.partition, form.remainder, independent)


def _divisors(form: ReducedMomenta) -> list[Node]:
    """Return the conditions that the constraints determine the dependent speeds."""
    conditions = (divisor.holds(SINGULAR_LIMIT) for divisor in form.partition.pivots)
    return [condition for condition in conditions if condition is not None]


def _solved(s: Fragment, lower: Sequence[Sequence[Node]], right: Sequence[Node], title: str) -> Sequence[Node]:
    """Return the solution of a symmetric positive definite system, as straight-line code if it is small."""
    n = len(right)
    if n <= SQUARE_LIMIT:
        solution, definite = solve_symmetric(lower, right)
        s.require(*definite)
        s.guard()
        return solution
    s.guard()
    return s.call("cholesky_solve", n, title=title, names={"a": "M", "b": "m"}, a=lower_triangle(lower), b=right)["b"]


# -- the unreduced right-hand side ------------------------------------------------------------------------------


def _add_unreduced(f: Functions, momenta: Momenta, form: str, stabilized: bool) -> None:
    """Add ``mom' = e + ehat + J^T lambda``, where constraint forces and loads in u' add up to ``Q u' - P``."""
    rate = momenta.canonical_rate if form == "hamilton" else momenta.rate

    def made(s: Fragment, accelerations: Accelerations | None) -> Fragment:
        e, total, sdot = f.equations, list(rate), f.equations.sdot.nodes
        speeds = _unreduced_speeds(f, s, momenta)
        at = partial(_with_speeds, f, speeds)
        if accelerations is not None:
            udot = accelerations(f, s, stabilized, at)
            sdot = _with_accelerations(f, udot, sdot)
            inertia = matrix_vector(f.graph, e.mass_matrix, udot)
            total = [x + (y - z) for x, y, z in zip(rate, inertia, e.right_side, strict=True)]
        rates = [*e.qdot.nodes, *total, *sdot]
        return s.output(at(rates), title="q' and mom' = e + ehat + J^T lambda")

    name = "momentum_rhs_stabilized" if stabilized else "momentum_rhs"
    kind = f"(unreduced momentum form, {STATE})"
    summary = f"q' and mom' with dependent speeds chosen by pivoting {kind}"
    fast = _accelerations(f) if f.n_c or _need_accelerations(f) else None
    general = partial(made, accelerations=_any_accelerations) if f.n_c else None
    fragment = f.guarded(name, summary, partial(made, accelerations=fast), general)
    f.add(name, fragment, f"q' and mom' {kind}")


def _accelerations(f: Functions) -> Accelerations:
    """Return the solution of the reduced equations, or of ``T u' = V`` if M is not symmetric."""
    return reduced if f.equations.is_symmetric else nonminimal


def _any_accelerations(f: Functions, s: Fragment, stabilized: bool, at: At) -> Sequence[Node]:
    """Return u' with dependent speeds chosen at run time."""
    e = f.equations
    parts = {"Q": e.M, "P": e.P, "J": e.J, "b": e.b_stabilized if stabilized else e.b}
    values: dict[str, Any] = {name: at(quantity.nodes) for name, quantity in parts.items()}
    return s.call(constrained_solve(f), f.n_u, f.n_c, title=f"{e.M.name}, P, J and b", **values)["udot"]
