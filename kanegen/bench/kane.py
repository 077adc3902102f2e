"""A model through SymPy's own ``KanesMethod``: the equations every peer of a comparison evaluates.

Nothing here uses kanegen's derivation, so the peers are also an independent check of it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import KanesMethod, Particle
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import KanegenError
from kanegen.graph.ranks import pivoted_columns, unit_rows
from kanegen.model import Model
from kanegen.model.checks.velocities import motion_problems
from kanegen.pipeline import build


class PeerError(KanegenError):
    """A model for which SymPy's ``KanesMethod`` gives no equations to compare with."""


@dataclass(frozen=True)
class KaneEquations:
    """``mass * u' = forcing`` and ``q'`` of a model, by ``KanesMethod``.

    The symbols are ``t``, ``q[i]``, ``u[i]``, ``r[i]`` and ``p[i]`` in the order of the model's arrays,
    columns of ``mass`` in the order of the model's speeds. ``constrained``: the first rows are Kane's
    equations of the independent speeds, the last ones the differentiated constraints, so that ``mass`` is not
    symmetric.
    """

    name: str
    qdot: tuple[Any, ...]
    mass: Any
    forcing: tuple[Any, ...]
    sizes: Mapping[str, int]
    constrained: bool

    def symbols(self, array: str) -> tuple[Any, ...]:
        """The symbols of one array: ``q``, ``u``, ``r`` or ``p``."""
        return array_symbols(array, self.sizes[array])


@dataclass(frozen=True)
class KaneDerivation:
    """A finished ``KanesMethod`` of a model, and the ``seconds`` it took to form the equations."""

    model: Model
    method: Any
    seconds: float


@dataclass(frozen=True)
class _Rows:
    """Constraint rows for ``KanesMethod``; ``frozen`` maps the stand-ins of speeds back to the speeds."""

    dependent: tuple[Any, ...]
    velocity: tuple[Any, ...]
    acceleration: tuple[Any, ...]
    frozen: Mapping[Any, Any]


def array_symbols(array: str, length: int) -> tuple[Any, ...]:
    """Symbols whose names read as C array elements, ``q[0]``, ``q[1]`` ..."""
    return tuple(sm.Symbol(f"{array}[{k}]") for k in range(length))


def apply_kanes_method(model: Model, point: Mapping[str, Any]) -> KaneDerivation:
    """Run ``KanesMethod`` on the SymPy objects of ``model``.

    ``point`` (``t``, ``q``, ``u``, optionally ``r``) is a state at which dependent speeds are chosen when the
    model names none. Raises `PeerError` when ``KanesMethod`` cannot treat the model.
    """
    _refuse_what_kane_cannot(model)
    rows = _constraint_rows(model, point)
    started = time.perf_counter()
    with warnings.catch_warnings():
        # SymPy warns when the velocity of a point follows from several points; they agree.
        warnings.simplefilter("ignore", UserWarning)
        method = _formed(model, rows)
        # SymPy assembles the matrices when they are read.
        mass, forcing = method.mass_matrix, method.forcing
    seconds = time.perf_counter() - started
    if rows.frozen:
        method = _Thawed(method, mass.xreplace(rows.frozen), forcing.xreplace(rows.frozen))
    return KaneDerivation(model, method, seconds)


@dataclass(frozen=True)
class Building:
    """Seconds that ``Model.from_kane`` (``checking`` of velocities against positions included) and ``build`` took."""

    seconds: float
    checking: float


def build_from_kane(derivation: KaneDerivation) -> Building:
    """Read and build a finished ``KanesMethod``; the wrapper is compiled before, as that is done once per machine."""
    build(derivation.model, functions=("rhs",))
    started = time.perf_counter()
    values = {symbol: value for symbol, value in derivation.model.parameters.items() if value is not None}
    # A new name, so that the cache has no such model.
    model = Model.from_kane(derivation.method, name=f"kane {time.time_ns()}", parameters=values)
    build(model)
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    motion_problems(model)
    return Building(seconds, time.perf_counter() - started)


def _formed(model: Model, rows: _Rows) -> Any:
    method = KanesMethod(
        model.frame,
        list(model.coordinates),
        [speed for speed in model.speeds if speed not in rows.dependent],
        kd_eqs=list(model.kinematics),
        u_dependent=list(rows.dependent) or None,
        velocity_constraints=list(rows.velocity) or None,
        acceleration_constraints=list(rows.acceleration) or None,
    )
    method.kanes_equations(list(model.bodies), _all_loads(model) or None)
    return method


class _Thawed:
    """The attributes of a ``KanesMethod`` that are read here, with the speeds in place of their stand-ins."""

    def __init__(self, method: Any, mass: Any, forcing: Any) -> None:
        self.u = method.u
        self.mass_matrix = mass
        self.forcing = forcing
        self.kindiffdict = method.kindiffdict


def kane_equations(derivation: KaneDerivation) -> KaneEquations:
    """The equations of a finished derivation over the symbols of arrays."""
    model, method = derivation.model, derivation.method
    to_arrays = _substitution(model)
    order = [list(method.u).index(speed) for speed in model.speeds]
    mass = method.mass_matrix.extract(list(range(len(order))), order)
    rates = method.kindiffdict()
    constrained = bool(constraint_count(model))
    if not constrained:
        mass = mass.extract(order, list(range(len(order))))
    forcing = [method.forcing[k] for k in (range(len(order)) if constrained else order)]
    time_symbol = dynamicsymbols._t
    return KaneEquations(
        name=model.name,
        qdot=tuple(to_arrays(rates[coordinate.diff(time_symbol)]) for coordinate in model.coordinates),
        mass=mass.applyfunc(to_arrays),
        forcing=tuple(to_arrays(entry) for entry in forcing),
        sizes={array: len(symbols) for array, symbols in _arrays(model).items()},
        constrained=constrained,
    )


def constraint_count(model: Model) -> int:
    """Number of constraint rows the user gave, of all three kinds."""
    return len(model.constraints)


def _refuse_what_kane_cannot(model: Model) -> None:
    if model.auxiliary_speeds:
        raise PeerError(f"{model.name}: the comparison does not cover auxiliary speeds")
    for item in model.inputs:
        if item.rate is not None and not isinstance(item.symbol, AppliedUndef):
            raise PeerError(
                f"{model.name}: SymPy differentiates the input {item.name} as a constant, since it is a "
                "plain Symbol; KanesMethod needs dynamicsymbols()"
            )
    custom = {
        str(atom.func)
        for expression in _scalar_expressions(model)
        for atom in expression.atoms(sm.Function)
        if hasattr(atom.func, "kanegen_function")
    }
    if custom:
        raise PeerError(f"{model.name}: {', '.join(sorted(custom))} has no meaning to SymPy's lambdify and C printer")


def _scalar_expressions(model: Model) -> tuple[Any, ...]:
    vectors = [vector for _, vector in model.loads]
    components = [entry for vector in vectors for block, _ in vector.args for entry in block]
    return (*model.constraints, *components)


def _all_loads(model: Model) -> list[tuple[Any, Any]]:
    loads = list(model.loads)
    if model.gravity is not None:
        loads += [(_mass_center(body), body.mass * model.gravity) for body in model.bodies]
    return loads


def _mass_center(body: Any) -> Any:
    return body.point if isinstance(body, Particle) else body.masscenter


def _constraint_rows(model: Model, point: Mapping[str, Any]) -> _Rows:
    """Velocity rows, and acceleration rows where ``KanesMethod`` cannot derive them.

    ``KanesMethod`` accepts velocity constraints that are linear in the speeds only. A nonlinear row psi, or
    one given at acceleration level, enters as its Jacobian times u with stand-ins for the speeds in the
    Jacobian, together with the differentiated row; that gives its partial velocities (Appell, Chetaev: psi_u)
    unchanged.
    """
    if not constraint_count(model):
        return _Rows((), (), (), {})
    moment, speeds = dynamicsymbols._t, sm.Matrix(model.speeds)
    rates = KanesMethod(
        model.frame, list(model.coordinates), list(model.speeds), kd_eqs=list(model.kinematics)
    ).kindiffdict()
    velocity = [row.diff(moment).xreplace(rates) for row in model.holonomic_constraints]
    velocity += [row.xreplace(rates) for row in model.nonholonomic_constraints]
    acceleration = [row.diff(moment).xreplace(rates) for row in velocity]
    acceleration += [row.xreplace(rates) for row in model.acceleration_constraints]
    jacobian = sm.Matrix(acceleration).jacobian(speeds.diff(moment))
    dependent = model.dependent_speeds or _pivot_speeds(model, jacobian, point)
    if len(dependent) != len(acceleration):
        raise PeerError(
            f"{model.name}: {len(acceleration)} constraint rows for {len(dependent)} dependent speeds; "
            "KanesMethod needs as many independent rows as dependent speeds"
        )
    if not model.acceleration_constraints and not jacobian.has(*model.speeds):
        return _Rows(tuple(dependent), tuple(velocity), (), {})
    stand_ins = {speed: sm.Dummy(f"frozen_{k}") for k, speed in enumerate(model.speeds)}
    frozen_rows = jacobian.xreplace(stand_ins) * speeds
    thaw = {stand_in: speed for speed, stand_in in stand_ins.items()}
    return _Rows(tuple(dependent), tuple(frozen_rows), tuple(acceleration), thaw)


def _pivot_speeds(model: Model, jacobian: Any, point: Mapping[str, Any]) -> tuple[Any, ...]:
    """Dependent speeds by QR with column pivoting of the constraint Jacobian at ``point``."""
    values = point_values(model, point)
    matrix = np.array(jacobian.applyfunc(_substitution(model)).subs(values).evalf(), dtype=float)
    rank, order = pivoted_columns(unit_rows(matrix))
    return tuple(speed for k, speed in enumerate(model.speeds) if k in order[:rank])


def point_values(model: Model, point: Mapping[str, Any]) -> dict[Any, float]:
    """Array symbols to numbers at a state, with the model's parameter values and input defaults.

    Raises `PeerError` naming a parameter or an input that has no value.
    """
    arrays = {"q": point["q"], "u": point["u"], "r": input_values(model, point), "p": parameter_values(model)}
    values: dict[Any, float] = {dynamicsymbols._t: float(point["t"])}
    for array, numbers in arrays.items():
        symbols = array_symbols(array, len(numbers))
        values.update(zip(symbols, map(float, numbers), strict=True))
    return values


def parameter_values(model: Model) -> tuple[float, ...]:
    """Parameter values in order; `PeerError` names those that are missing."""
    missing = [str(symbol) for symbol, value in model.parameters.items() if value is None]
    if missing:
        raise PeerError(f"{model.name}: a comparison needs a value of {', '.join(missing)}: give Model(parameters=...)")
    return tuple(float(value) for value in model.parameters.values() if value is not None)


def input_values(model: Model, point: Mapping[str, Any]) -> tuple[float, ...]:
    """Input values in order: of ``point``, else the defaults; `PeerError` names those that are missing."""
    given = point.get("r")
    if given is not None:
        return tuple(float(value) for value in given)
    missing = [item.name for item in model.inputs if item.default is None]
    if missing:
        raise PeerError(f"{model.name}: a comparison needs values of the inputs {', '.join(missing)}, INITIAL['r']")
    return tuple(float(item.default) for item in model.inputs if item.default is not None)


def _arrays(model: Model) -> dict[str, Sequence[Any]]:
    """The user's symbols by the arrays in which the equations have them."""
    inputs = [item.symbol for item in model.inputs]
    return {"q": model.coordinates, "u": model.speeds, "r": inputs, "p": list(model.parameters)}


def _substitution(model: Model) -> Callable[[Any], Any]:
    """From the user's symbols to array symbols; a derivative that is left over is a `PeerError`."""
    moment = dynamicsymbols._t
    names: dict[Any, Any] = {}
    for array, symbols in _arrays(model).items():
        names.update(zip(symbols, array_symbols(array, len(symbols)), strict=True))
    rates: dict[Any, Any] = {}
    for item in model.inputs:
        if item.rate is not None:
            rates[item.symbol.diff(moment)] = item.rate
            if item.acceleration is not None:
                rates[item.symbol.diff(moment, 2)] = item.acceleration

    def to_arrays(expression: Any) -> Any:
        result = sm.sympify(expression).xreplace(rates).xreplace(names)
        left: Sequence[Any] = sorted(map(str, result.atoms(sm.Derivative, AppliedUndef)))
        if left:
            raise PeerError(f"{model.name}: KanesMethod leaves {', '.join(left)} in its equations")
        return result

    return to_arrays
