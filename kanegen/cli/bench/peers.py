"""Peers made by SymPy alone: the equations of a model by ``KanesMethod``, in C and in Python.

Nothing here uses kanegen's derivation, so the peers are also an independent check of it.
"""

from __future__ import annotations

import ctypes
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import sympy as sm
from sympy.codegen.rewriting import create_expand_pow_optimization
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import KanesMethod, Particle
from sympy.physics.vector import dynamicsymbols
from sympy.printing.c import C99CodePrinter

from kanegen.arrays import Array
from kanegen.cli.bench.compiled import start_states, timed_library
from kanegen.cli.bench.timing import timed
from kanegen.codegen.sources import render, runtime_headers
from kanegen.codegen.text import comment
from kanegen.errors import KanegenError, SolveError
from kanegen.graph.ranks import pivoted_columns, unit_rows
from kanegen.model import Model
from kanegen.model.checks.velocities import motion_problems
from kanegen.model.records import ACCELERATION, POSITION, VELOCITY
from kanegen.pipeline import build

Ode: TypeAlias = Callable[[float, Array], Array]

METHODS = ("RK45", "DOP853", "LSODA")
"""Methods of `scipy.integrate.solve_ivp` that are compared."""


class PeerError(KanegenError):
    """Raised for a model to which SymPy's ``KanesMethod`` does not apply, so that there is nothing to compare with."""


@dataclass(frozen=True)
class KaneEquations:
    """``mass * u' = forcing`` and ``q'`` of a model, by ``KanesMethod``, and the rates ``sdot`` of its states.

    The symbols are ``t``, ``q[i]``, ``u[i]``, ``s[i]``, ``r[i]`` and ``p[i]`` in the order of the model's arrays, whose
    lengths are ``sizes``; columns of ``mass`` are in the order of the model's speeds. ``constrained``: the first rows
    are Kane's equations of the independent speeds, the last ones the differentiated constraints, so that ``mass`` is
    not symmetric.
    """

    name: str
    qdot: tuple[Any, ...]
    mass: Any
    forcing: tuple[Any, ...]
    sdot: tuple[Any, ...]
    sizes: Mapping[str, int]
    constrained: bool


@dataclass(frozen=True)
class KaneDerivation:
    """A finished ``KanesMethod`` of a model with its matrices, and the ``seconds`` it took to form the equations."""

    model: Model
    method: Any
    mass: Any
    forcing: Any
    seconds: float


@dataclass(frozen=True)
class _Rows:
    """Constraint rows for ``KanesMethod``; ``frozen`` maps the stand-ins of speeds back to the speeds."""

    dependent: Sequence[Any] = ()
    velocity: Sequence[Any] = ()
    acceleration: Sequence[Any] = ()
    frozen: Mapping[Any, Any] | None = None


def apply_kanes_method(model: Model, point: Mapping[str, Any], constraint_solver: str = "LU") -> KaneDerivation:
    """Run ``KanesMethod`` on the SymPy objects of ``model``.

    ``point`` (``t``, ``q``, ``u``, optionally ``r``) is a state at which dependent speeds are chosen when the
    model names none; ``constraint_solver`` is the option of ``KanesMethod``. Raises `PeerError` when ``KanesMethod``
    cannot treat the model.
    """
    _refuse_what_kane_cannot(model)
    rows = _constraint_rows(model, point)
    with warnings.catch_warnings():
        # SymPy warns when the velocity of a point follows from several points; they agree.
        warnings.simplefilter("ignore", UserWarning)
        (method, mass, forcing), seconds = timed(partial(_formed, model, rows, constraint_solver))
    if rows.frozen:
        mass, forcing = mass.xreplace(rows.frozen), forcing.xreplace(rows.frozen)
    return KaneDerivation(model, method, mass, forcing, seconds)


def _formed(model: Model, rows: _Rows, constraint_solver: str) -> tuple[Any, Any, Any]:
    method = KanesMethod(
        model.frame,
        list(model.coordinates),
        [speed for speed in model.speeds if speed not in rows.dependent],
        kd_eqs=list(model.kinematics),
        u_dependent=list(rows.dependent) or None,
        velocity_constraints=list(rows.velocity) or None,
        acceleration_constraints=list(rows.acceleration) or None,
        constraint_solver=constraint_solver,
    )
    loads = list(model.loads)
    if model.gravity is not None:
        centers = [body.point if isinstance(body, Particle) else body.masscenter for body in model.bodies]
        loads += [(center, body.mass * model.gravity) for center, body in zip(centers, model.bodies, strict=True)]
    method.kanes_equations(list(model.bodies), loads or None)
    # SymPy assembles the matrices when they are read.
    return method, method.mass_matrix, method.forcing


def build_from_kane(derivation: KaneDerivation) -> tuple[float, float]:
    """Seconds to read and build a finished ``KanesMethod``, and to compare its velocities with its positions.

    The wrapper is compiled before, because that happens only once per machine.
    """
    build(derivation.model, functions=("rhs",))
    values = {symbol: value for symbol, value in derivation.model.parameters.items() if value is not None}

    def read() -> Model:
        # A new name, so that the cache has no such model.
        model = Model.from_kane(derivation.method, name=f"kane {time.time_ns()}", parameters=values)
        build(model)
        return model

    model, seconds = timed(read)
    return seconds, timed(partial(motion_problems, model))[1]


def kane_equations(derivation: KaneDerivation) -> KaneEquations:
    """The equations of a finished derivation over the symbols of arrays."""
    model, method, mass, forcing = derivation.model, derivation.method, derivation.mass, derivation.forcing
    to_arrays = _substitution(model)
    order = [list(method.u).index(speed) for speed in model.speeds]
    # With constraints the rows are no longer those of the speeds.
    rows = list(range(len(order))) if model.constraints else order
    rates = method.kindiffdict()
    return KaneEquations(
        name=model.name,
        qdot=tuple(to_arrays(rates[coordinate.diff(dynamicsymbols._t)]) for coordinate in model.coordinates),
        mass=mass.extract(rows, order).applyfunc(to_arrays),
        forcing=tuple(to_arrays(forcing[k]) for k in rows),
        sdot=tuple(to_arrays(rate.xreplace(rates)) for rate in model.states.values()),
        sizes={array: len(symbols) for array, symbols in _arrays(model).items()},
        constrained=bool(model.constraints),
    )


def _refuse_what_kane_cannot(model: Model) -> None:
    if model.lagrangian is not None:
        raise PeerError(f"{model.name}: KanesMethod does not read the lagrangian of a model")
    if model.auxiliary_speeds:
        raise PeerError(f"{model.name}: the comparison does not cover auxiliary speeds")
    if model.is_accelerated:
        raise PeerError(
            f"{model.name}: the loads on {', '.join(model.accelerated_loads)} depend on accelerations, which "
            "KanesMethod leaves in its forcing"
        )
    for item in model.inputs:
        if item.rate is not None and not isinstance(item.symbol, AppliedUndef):
            raise PeerError(
                f"{model.name}: SymPy differentiates the input {item.name} as a constant, since it is a "
                "plain Symbol; KanesMethod needs dynamicsymbols()"
            )
    components = [entry for _, vector in model.loads for block, _ in vector.args for entry in block]
    atoms = {atom for expression in (*model.constraints, *components) for atom in expression.atoms(sm.Function)}
    custom = sorted({str(atom.func) for atom in atoms if hasattr(atom.func, "kanegen_function")})
    if custom:
        raise PeerError(f"{model.name}: {', '.join(custom)} has no meaning to SymPy's lambdify and C printer")


def _constraint_rows(model: Model, point: Mapping[str, Any]) -> _Rows:
    """Velocity rows, and acceleration rows where ``KanesMethod`` cannot derive them.

    ``KanesMethod`` accepts velocity constraints that are linear in the speeds only. A nonlinear row psi, or
    one given at acceleration level, enters as its Jacobian times u with stand-ins for the speeds in the
    Jacobian, together with the differentiated row; that gives its partial velocities (Appell, Chetaev: psi_u)
    unchanged.
    """
    if not model.constraints:
        return _Rows()
    moment, speeds = dynamicsymbols._t, sm.Matrix(model.speeds)
    rates = KanesMethod(
        model.frame, list(model.coordinates), list(model.speeds), kd_eqs=list(model.kinematics)
    ).kindiffdict()
    velocity = [row.diff(moment).xreplace(rates) for row in model.constraints_on(POSITION)]
    velocity += [row.xreplace(rates) for row in model.constraints_on(VELOCITY)]
    acceleration = [row.diff(moment).xreplace(rates) for row in velocity]
    acceleration += [row.xreplace(rates) for row in model.constraints_on(ACCELERATION)]
    jacobian = sm.Matrix(acceleration).jacobian(speeds.diff(moment))
    dependent = model.dependent_speeds or _pivot_speeds(model, jacobian, point)
    if len(dependent) != len(acceleration):
        raise PeerError(
            f"{model.name}: {len(acceleration)} constraint rows for {len(dependent)} dependent speeds; "
            "KanesMethod needs as many independent rows as dependent speeds"
        )
    if not model.constraints_on(ACCELERATION) and not jacobian.has(*model.speeds):
        return _Rows(dependent, velocity)
    stand_ins = {speed: sm.Dummy(f"frozen_{k}") for k, speed in enumerate(model.speeds)}
    thaw = {stand_in: speed for speed, stand_in in stand_ins.items()}
    return _Rows(dependent, tuple(jacobian.xreplace(stand_ins) * speeds), acceleration, thaw)


def _pivot_speeds(model: Model, jacobian: Any, point: Mapping[str, Any]) -> tuple[Any, ...]:
    """Dependent speeds by QR with column pivoting of the constraint Jacobian at ``point``.

    Parameters and inputs have the values of the model. Raises `PeerError` naming one that has no value.
    """
    values: dict[Any, float] = {dynamicsymbols._t: float(point["t"])}
    arrays = {"q": point["q"], "u": point["u"], "s": start_states(point), "r": input_values(model, point)}
    arrays |= {"p": parameter_values(model)}
    for array, numbers in arrays.items():
        values.update(zip(_array_symbols(array, len(numbers)), map(float, numbers), strict=True))
    matrix = np.array(jacobian.applyfunc(_substitution(model)).subs(values).evalf(), dtype=float)
    rank, order = pivoted_columns(unit_rows(matrix))
    return tuple(speed for k, speed in enumerate(model.speeds) if k in order[:rank])


def parameter_values(model: Model) -> tuple[float, ...]:
    """Parameter values in order; `PeerError` names missing ones."""
    missing = [str(symbol) for symbol, value in model.parameters.items() if value is None]
    if missing:
        raise PeerError(f"{model.name}: a comparison needs a value of {', '.join(missing)}: give Model(parameters=...)")
    return tuple(float(value) for value in model.parameters.values() if value is not None)


def input_values(model: Model, point: Mapping[str, Any], of_laws: float | None = None) -> tuple[float, ...]:
    """Input values in order: of ``point``, else the defaults; `PeerError` names missing ones.

    ``of_laws``: the value of inputs without a default that a law determines, for functions that do not evaluate laws.
    """
    given = point.get("r")
    if given is not None:
        return tuple(float(value) for value in given)
    values = {
        item.name: of_laws if item.default is None and item.law is not None else item.default for item in model.inputs
    }
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise PeerError(f"{model.name}: a comparison needs values of the inputs {', '.join(missing)}, INITIAL['r']")
    return tuple(float(value) for value in values.values() if value is not None)


def _array_symbols(array: str, length: int) -> tuple[Any, ...]:
    """Symbols whose names read as C array elements, ``q[0]``, ``q[1]`` ..."""
    return tuple(sm.Symbol(f"{array}[{k}]") for k in range(length))


def _arrays(model: Model) -> dict[str, Sequence[Any]]:
    """The user's symbols by the arrays in which the equations have them."""
    inputs = [item.symbol for item in model.inputs]
    arrays = {"q": model.coordinates, "u": model.speeds, "s": tuple(model.states), "r": inputs}
    return {**arrays, "p": list(model.parameters)}


def _substitution(model: Model) -> Callable[[Any], Any]:
    """A function from the user's symbols to array symbols; it raises `PeerError` if a derivative remains."""
    moment = dynamicsymbols._t
    names: dict[Any, Any] = {}
    for array, symbols in _arrays(model).items():
        names.update(zip(symbols, _array_symbols(array, len(symbols)), strict=True))
    rates: dict[Any, Any] = {}
    for item in model.inputs:
        if item.rate is not None:
            rates[item.symbol.diff(moment)] = item.rate
            if item.acceleration is not None:
                rates[item.symbol.diff(moment, 2)] = item.acceleration

    def to_arrays(expression: Any) -> Any:
        result = sm.sympify(expression).xreplace(rates)
        left = result.atoms(sm.Derivative) or result.atoms(AppliedUndef) - names.keys()
        if left:
            raise PeerError(
                f"{model.name}: the equations of KanesMethod and the rates of states contain "
                f"{', '.join(sorted(map(str, left)))}, which has no value there"
            )
        return result.xreplace(names)

    return to_arrays


def peer_source(equations: KaneEquations) -> str:
    """The C text of the peer: ``cse`` of q', mass matrix, forcing and s' together, then a solve in loops.

    Of a symmetric mass matrix only the lower triangle is formed, which is all that Cholesky reads.
    """
    size, n_q = equations.sizes["u"], equations.sizes["q"]
    places = [(i, j) for i in range(size) for j in range(size if equations.constrained else i + 1)]
    entries = [equations.mass[i, j] for i, j in places]
    every = [*equations.qdot, *entries, *equations.forcing, *equations.sdot]
    temporaries, reduced = sm.cse(every, symbols=sm.numbered_symbols("x"))
    printer = C99CodePrinter()
    # A careful user replaces pow(x, 2) and pow(x, -3) by products.
    expand = create_expand_pow_optimization(4, base_req=lambda base: True)
    texts = [printer.doprint(expand(expression)) for expression in reduced]
    end = n_q + len(places) + size
    return render(
        "bench/peer.c.jinja",
        name=comment(equations.name),
        sizes=equations.sizes,
        constrained=equations.constrained,
        temporaries=[(symbol, printer.doprint(expand(expression))) for symbol, expression in temporaries],
        qdot=texts[:n_q],
        mass=[(i, j, text) for (i, j), text in zip(places, texts[n_q:], strict=False)],
        forcing=texts[n_q + len(places) : end],
        sdot=texts[end:],
    )


def peer_library(equations: KaneEquations) -> ctypes.CDLL:
    """The compiled peer, linked with the timing loop; its only function is ``rhs``. Raises `BuildError`."""
    return timed_library({**runtime_headers(), "peer.c": peer_source(equations)}, "peer.c")


def integrate(ode: Ode, end: float, start: tuple[float, Array], method: str, tolerance: float) -> Array:
    """The state at ``end`` by `scipy.integrate.solve_ivp`, rtol = ``tolerance``, atol = ``tolerance`` / 100.

    Raises `SolveError` if the run stops early or leaves the domain of a function, or if y' is not finite at the start.
    """
    from scipy.integrate import solve_ivp

    t, y = start
    try:
        if not np.isfinite(ode(t, y)).all():  # solve_ivp would try smaller steps without end
            raise SolveError(f"solve_ivp with {method} cannot start: the derivatives are not finite")
        solution = solve_ivp(ode, (t, end), y, method=method, rtol=tolerance, atol=0.01 * tolerance)
    except (ArithmeticError, ValueError) as error:
        raise SolveError(f"solve_ivp with {method} and rtol={tolerance:g} stopped: {error}") from error
    if not solution.success:
        raise SolveError(f"solve_ivp with {method} and rtol={tolerance:g} stopped: {solution.message}")
    return np.asarray(solution.y[:, -1])


def python_peer(
    equations: KaneEquations, inputs: Sequence[float], parameters: Sequence[float], functions: str = "math"
) -> Ode:
    """``ode(t, y)`` with y = (q, u, s): ``lambdify(cse=True)`` of q', M, forcing and s', one `numpy.linalg.solve`.

    ``functions``: ``"math"``, the choice of a careful user, because it is faster here than NumPy's scalars; or
    ``"numpy"``, the default of ``lambdify``.
    """
    arguments = [
        dynamicsymbols._t,
        *(_array_symbols(array, equations.sizes[array]) for array in ("q", "u", "s", "r", "p")),
    ]
    values = [list(equations.qdot), equations.mass.tolist(), list(equations.forcing), list(equations.sdot)]
    evaluate = sm.lambdify(arguments, values, modules=functions, cse=True)
    n_q, n = equations.sizes["q"], equations.sizes["q"] + equations.sizes["u"]
    r, p = tuple(map(float, inputs)), tuple(map(float, parameters))

    def ode(t: float, y: Array) -> Array:
        state = y.tolist()
        qdot, mass, forcing, sdot = evaluate(t, state[:n_q], state[n_q:n], state[n:], r, p)
        return np.concatenate((qdot, np.linalg.solve(mass, forcing), sdot))

    return ode
