"""Checks of values from the user: mappings by name, numbers, parameters and gains; parts of error messages."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.codegen.description import GROUPS, Description
from kanegen.errors import SolveError, brief, warn_user
from kanegen.model import Baumgarte, Projection
from kanegen.model.checks.symbols import surplus_message
from kanegen.model.stabilization import require_stabilization


def key_name(key: Any) -> str:
    """The name that a key refers to: the text itself, or the printed name of a symbol (``"r"`` for ``r(t)``)."""
    if isinstance(key, str):
        return key
    from kanegen.model.expressions import symbol_name

    return symbol_name(key)


def names_in(given: Any, what: str) -> list[str]:
    """Names from one name, or from a sequence of names or symbols. Raises `SolveError` for anything else."""
    if not isinstance(given, Iterable) or isinstance(given, np.ndarray):
        raise SolveError(f"{what} is {brief(given)}; expected a sequence of names or symbols")
    return [key_name(key) for key in ([given] if isinstance(given, str) else given)]


def known_name(given: Any, known: Sequence[str], what: str) -> str:
    """The name that a text or symbol refers to. Raises `SolveError` if it is not one of the known names."""
    name = key_name(given)
    if name not in known:
        raise SolveError(unknown(name, known, what))
    return name


def by_name(given: Mapping[Any, Any], known: Sequence[str], what: str) -> dict[str, Any]:
    """The mapping with names in place of symbols as keys. Raises `SolveError` for unknown and repeated names."""
    if not isinstance(given, Mapping):
        plural = f"{what}s" if what.isalpha() else what
        raise SolveError(
            f"the values by name ({plural}) are {brief(given)}; expected a mapping from names or symbols to values"
        )
    result: dict[str, Any] = {}
    problems = []
    for key, value in given.items():
        name = key_name(key)
        if name not in known:
            problems.append(unknown(name, known, what))
        elif name in result:
            problems.append(f"{what} {name!r} is given twice, by name and by symbol")
        result[name] = value
    require_none(problems)
    return result


def unknown(name: str, known: Sequence[str], what: str) -> str:
    """The message that ``name`` is unknown, with similar names or a list of all names."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        hint = f"there are {', '.join(known)}" if known else "the model has none"
    return f"there is no {what} {brief(name)}: {hint}"


def require_none(problems: Sequence[str], headline: str = "", advice: str = "") -> None:
    """Raise `SolveError` with the problems in one sentence, if there are any."""
    if problems:
        raise SolveError(headline + "; ".join(problems) + advice)


MOST_LISTED: Final = 10
"""Most problems of one kind in a message: a model of many loops can violate hundreds of constraints at once."""


def listed(headline: str, problems: Sequence[str], advice: str) -> str:
    """A message with a line for each problem, or for the first `MOST_LISTED` of them and their number."""
    hidden = len(problems) - MOST_LISTED
    shown = [*problems[:MOST_LISTED], f"and {hidden} more"] if hidden > 1 else problems
    return "\n  - ".join([f"{headline}:", *shown]) + f"\n{advice}"


def beyond(labels: Sequence[str], residuals: Array, limits: float | Array) -> list[str]:
    """One message for each row whose residual exceeds its limit or is NaN."""
    allowed = np.broadcast_to(limits, len(labels)).tolist()
    return [
        f"{short(label)}: residual {value:.6g}, allowed {limit:.3g}"
        for label, value, limit in zip(labels, residuals.tolist(), allowed, strict=True)
        if not abs(value) <= limit
    ]


def short(label: str) -> str:
    """The label, or its beginning and end: constraints of spatial systems can be pages long."""
    return label if len(label) <= 120 else f"{label[:75]} ... {label[-40:]}"


def largest(values: Any) -> float:
    """The largest magnitude of the values, or 1 if that is larger; tolerances are relative to it."""
    return max(1.0, float(np.abs(np.asarray(values, dtype=np.float64)).max(initial=0.0)))


def extent(*values: Any) -> float:
    """The largest magnitude of the values, in their own unit; 0 if all are zero."""
    return max((float(np.abs(np.asarray(x, dtype=np.float64)).max(initial=0.0)) for x in values), default=0.0)


_VANISHING: Final = 1e-200
"""A fraction of a smaller number, as differences take it, may not exist: Newton's method leaves speeds of 1e-320."""


def size(values: Any) -> float:
    """The largest magnitude of the values, in their own unit; 1 if all are zero or vanish beside their rounding."""
    largest = float(np.abs(np.asarray(values, dtype=np.float64)).max(initial=0.0))
    return 1.0 if largest < _VANISHING else largest


def one_state(t: Any, q: Any, u: Any, r: Any = None, s: Any = None) -> None:
    """Raise `SolveError` for arrays with a row for each of several states, where one state is expected."""
    if type(t) is float and type(q) is type(u) is np.ndarray and q.ndim == u.ndim == 1 and r is s is None:
        return  # the usual case; np.shape takes as long as some evaluations
    for name, value, ndim in (("t", t, 0), ("q", q, 1), ("u", u, 1), ("r", r, 1), ("s", s, 1)):
        if value is None or type(value) is float:
            continue
        try:
            shape = value.shape if isinstance(value, np.ndarray) else np.shape(value)
        except ValueError:  # lists of unequal lengths, which raise SolveError where they are read
            continue
        if len(shape) > ndim:
            expected = "a number" if ndim == 0 else f"({shape[-1]},)"
            raise SolveError(f"{name} has shape {shape}, expected {expected}: one state, not one in each row")


def number(value: Any, what: str) -> float:
    """``value`` as a finite float. Raises `SolveError` for anything that is not a finite real number."""
    try:
        result = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise SolveError(f"{what} is {brief(value)}; expected a finite real number")
    return result


def positive(value: Any, what: str, expected: str = "a positive number") -> float:
    """``value`` as a positive float. Raises `SolveError` for anything else."""
    result = number(value, what)
    if not result > 0.0:
        raise SolveError(f"{what} is {brief(value)}; expected {expected}")
    return result


def positive_integer(value: Any, what: str, expected: str = "a positive integer") -> int:
    """``value`` as a positive integer. Raises `SolveError` for anything else."""
    try:
        result = 0 if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:
        result = 0
    if result < 1:
        raise SolveError(f"{what} is {brief(value)}; expected {expected}")
    return result


def flag(value: Any, what: str) -> bool:
    """``value`` as True or False. Raises `SolveError` for anything else."""
    if not isinstance(value, (bool, np.bool_)):
        raise SolveError(f"{what} is {brief(value)}; expected True or False")
    return bool(value)


def numbers(values: Any, what: str, names: Sequence[str]) -> Array:
    """One finite float for each name, (n,); a single number applies to all. Raises `SolveError` for anything else."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if array.shape not in ((), (len(names),)) or not np.isfinite(array).all():
        raise SolveError(
            f"{what} is {brief(values)}; expected {len(names)} finite number(s), for {', '.join(names)}, or one for all"
        )
    return np.broadcast_to(array, (len(names),)).copy()


def with_keywords(values: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a mapping and those of keywords. Raises `SolveError` for names that are in both."""
    require_none([f"{name!r} is given twice" for name in named if name in values])
    return {**values, **named}


class Variables(NamedTuple):
    """The coordinates, speeds or states of a model; ``argument`` is the argument with their values: q, u or s."""

    argument: str
    kind: str
    names: tuple[str, ...]
    model: str

    @classmethod
    def of(cls, d: Description, suffix: str = "") -> tuple[Variables, Variables, Variables]:
        """The coordinates, speeds and states of a model; the names of the arguments end with ``suffix``."""
        q, u, s = (cls(letter + suffix, GROUPS[letter], d.names[letter], d.name) for letter in "qus")
        return q, u, s

    def read(self, given: Any) -> dict[str, float]:
        """Values by name, from a mapping by name or symbol, an array (n,), or None, which gives none.

        Raises `SolveError` for unknown names, wrong shapes and values that are not finite.
        """
        if given is None:
            return {}
        if isinstance(given, Mapping):
            named = by_name(given, self.names, self.kind)
            return {name: number(value, f"{self.kind} {name}") for name, value in named.items()}
        expected = f"({len(self.names)},): {', '.join(self.names)}"
        if not self.names:
            expected = f"nothing, because the model {self.model!r} has no {self.kind}s"
        try:
            array = np.array(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise SolveError(f"{self.argument} is {brief(given)}; expected {expected}") from error
        if array.shape != (len(self.names),):
            raise SolveError(f"{self.argument} has shape {array.shape}; expected {expected}")
        return {name: number(x, f"{self.kind} {name}") for name, x in zip(self.names, array.tolist(), strict=True)}

    def array(self, values: Mapping[str, float]) -> Array:
        """The values (n,) in order. Raises `SolveError` that names those that are missing."""
        complete = self.complete(values)
        return np.array([complete[name] for name in self.names])

    def complete(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same values. Raises `SolveError` that names those that are missing."""
        missing = [name for name in self.names if name not in values]
        if missing:
            kind, them = (f"{self.kind}s", "them") if len(missing) > 1 else (self.kind, "it")
            raise SolveError(
                f"there is no value of the {kind} {', '.join(missing)} of the model {self.model!r}: add {them} to "
                f"{self.argument}, or give a start by Model(initial=...) or solver.with_initial(...)"
            )
        return values


_SHOWN = 8
"""Largest number of entries in the text of a result."""


def shown(entries: Sequence[str]) -> str:
    """A list for the text of a result, shortened in the middle if it is long."""
    if len(entries) > _SHOWN:
        entries = [*entries[: _SHOWN - 2], f"... ({len(entries)} in all) ...", entries[-1]]
    return ", ".join(entries)


def shown_values(names: Sequence[str], values: Any) -> str:
    """Names with values for the text of a result: ``theta = 0.3, x = 1.2``."""
    pairs = zip(names, np.asarray(values).tolist(), strict=True)
    return shown([f"{name} = {value:.6g}" for name, value in pairs])


def by_array(given: Any) -> bool:
    """Whether values are given in order, not by name; compiled functions check such arguments."""
    return type(given) is np.ndarray or (given is not None and not isinstance(given, Mapping))


def _columns(values: Mapping[str, Any], names: Sequence[str], kind: str) -> Array:
    """Values by name in order: numbers give (n,), or with an array (N,) of at least one of them (N, n)."""
    given = [values[name] for name in names]
    if not any(isinstance(value, (np.ndarray, list, tuple, range)) for value in given):
        return np.array([number(value, f"{kind} {name}") for name, value in zip(names, given, strict=True)])
    arrays = [real_array(value, f"{kind} {name}") for name, value in zip(names, given, strict=True)]
    lengths = {array.shape for array in arrays if array.ndim}
    if len(lengths) > 1 or any(len(shape) > 1 for shape in lengths):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True) if array.ndim)
        raise SolveError(f"the values by name ({kind}) have shapes {shapes}; expected numbers, or (N,) with the same N")
    return np.stack(np.broadcast_arrays(*arrays), axis=-1)


def input_array(d: Description, given: Mapping[Any, Any], defaults: Array) -> Array:
    """Inputs (n_r,) from a mapping by name or symbol and defaults; with (N,) values of one input (N, n_r).

    Raises `SolveError` for unknown names, and for inputs that have neither a value nor a default.
    """
    known = dict(zip(d.inputs, defaults.tolist(), strict=False))
    named = by_name(given, d.inputs, "input")
    missing = [name for name in d.inputs if name not in named and np.isnan(known[name])]
    if missing:
        raise SolveError(
            f"r gives no value of {', '.join(missing)}, inputs of the model {d.name!r} without a default: add them to "
            "r, or give each Input a default"
        )
    return _columns(known | named, d.inputs, "input")


def state_arrays(
    description: Description, initial: Mapping[str, float], q: Any, u: Any, s: Any, suffix: str = ""
) -> tuple[Any, Any, Any]:
    """The state as arrays. Values that a mapping by name or symbol leaves open, all for None, are those of ``initial``.

    A mapping that contains arrays (N,) gives an array with N rows. Arrays are returned unchanged. ``s`` remains None if
    ``initial`` has no values of the states, which many functions do not need. ``suffix`` is the end of the names of the
    arguments, for messages.

    Raises `SolveError` for unknown names, values that are not finite, and missing values, which it names.
    """
    arrays = []
    for variables, given in zip(Variables.of(description, suffix), (q, u, s), strict=True):
        unneeded = variables.kind == "state" and given is None and not initial.keys() >= set(variables.names)
        if by_array(given) or unneeded or (given is None and not variables.names):
            arrays.append(given)
        else:
            values = {**initial, **by_name(given or {}, variables.names, variables.kind)}
            arrays.append(_columns(variables.complete(values), variables.names, variables.kind))
    return arrays[0], arrays[1], arrays[2]


TIME = "t"
"""The name of time among the initial values, unless a variable has this name."""


def initial_values(given: Mapping[Any, Any], description: Description) -> dict[str, float]:
    """The values of the start by name. Raises `SolveError` for unknown names and values that are not finite."""
    names = description.components
    named = by_name(given, names if TIME in names else (*names, TIME), "coordinate, speed or state")
    return {name: number(value, f"the initial value of {name}") for name, value in named.items()}


def form_names(d: Description) -> tuple[str, ...]:
    """The names of all values that a run needs: parameters, coordinates, speeds, inputs, states."""
    return (*d.parameters, *d.coordinates, *d.speeds, *d.inputs, *d.states)


def form_values(
    d: Description, parameters: Mapping[Any, float | None], initial: Mapping[Any, float], values: Mapping[Any, float]
) -> dict[str, float]:
    """The known values by name: those of the model and its inputs, replaced by ``values``.

    Raises `SolveError` for unknown names and values that are not finite.
    """
    of_model = {key_name(key): value for key, value in (*parameters.items(), *initial.items())}
    defaults = {slot.name: slot.default for slot in d.input_slots}
    known = {name: value for name, value in (defaults | of_model).items() if value is not None}
    given = by_name(values, (*form_names(d), TIME), "parameter, coordinate, speed, input or state")
    return known | {name: number(value, f"the value of {name}") for name, value in given.items()}


def initial_time(d: Description, initial: Mapping[str, float]) -> float | None:
    """The time of the start; a variable of the name ``t`` is not the time."""
    return None if TIME in d.components else initial.get(TIME)


def time_or_start(t: Any, d: Description, initial: Mapping[str, float]) -> float:
    """The time ``t``; for None that of the start, or 0. Raises `SolveError` for anything but a number."""
    return (initial_time(d, initial) or 0.0) if t is None else number(t, "t")


def state_components(d: Description, control: bool) -> tuple[str, ...]:
    """Names of the components of the integrated state; momenta are named like their speeds.

    With ``control`` the controls of control constraints are part of the state.
    """
    of_loop = d.control_constraints.states if control is True and d.control_constraints else ()
    speeds = d.independent_names if d.form == "momentum" else d.speeds
    return (*d.coordinates, *speeds, *d.states, *d.input_names(of_loop))


def tolerances(given: Any, what: str, default: float, names: Sequence[str]) -> Any:
    """Tolerances of a run: those by name or symbol as an array (n,), with the default for others; or unchanged."""
    if not isinstance(given, Mapping):
        return given
    values = by_name(given, names, f"component of the state ({what})")
    return np.array([number(values.get(name, default), f"{what} of {name}") for name in names])


def plain_value(value: Any) -> Any:
    """Numbers, text, lists and mappings with text as keys, for JSON; anything else as its text."""
    if value is None or type(value) in (float, int, bool, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key_name(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_value(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def parameter_values(given: Mapping[Any, float | None], description: Description) -> dict[str, float | None]:
    """A number or None for every parameter, in order. Raises `SolveError` for unknown names and other values."""
    named = by_name(given, description.parameters, "parameter")
    values = {name: named.get(name) for name in description.parameters}
    return {name: None if value is None else number(value, f"parameter {name}") for name, value in values.items()}


def without_surplus(
    description: Description, values: Mapping[Any, Any], named: Mapping[str, Any]
) -> tuple[dict[Any, Any], dict[str, Any]]:
    """The values whose names the model has; one `ModelWarning` lists the others."""
    known = {*description.parameters, *description.spare_parameters}
    surplus = dict.fromkeys(name for name in map(key_name, (*values, *named)) if name not in known)
    if surplus:
        warn_user(surplus_message(surplus, description.parameters, description.name))
    kept = ({key: value for key, value in given.items() if key_name(key) in known} for given in (values, named))
    return next(kept), next(kept)


def gain_values(stabilization: Baumgarte | Projection | None, description: Description) -> Array:
    """The gains (n_g,) in the order of the compiled code; zero without stabilization and with projection.

    Raises `SolveError` for a model without constraints to stabilize, and for integrals that cannot be preserved,
    `ModelError` for anything that is no stabilization.
    """
    require_stabilization(stabilization)
    constraints = description.constraints
    n_h, n_v = constraints.n_holonomic, constraints.n_nonholonomic
    useful = stabilization is None
    if isinstance(stabilization, Projection):
        _check_integrals(stabilization, description)
        useful = bool(constraints.positions or stabilization.integrals)
    if not useful and n_h + n_v == 0:
        raise SolveError(
            f"the model {description.name!r} has no holonomic or nonholonomic constraint on its speeds, so that there "
            "is nothing to stabilize; leave stabilization out"
        )
    if stabilization is None or isinstance(stabilization, Projection):
        return np.zeros(constraints.n_gains)
    return stabilization.flatten(n_h, n_v)


def _check_integrals(projection: Projection, description: Description) -> None:
    """Raise `SolveError` for integrals of motion that do not exist, cannot be preserved or were not built."""
    known, reasons = ("energy", *description.outputs), description.no_integrals
    problems = []
    for name in projection.integrals:
        if name not in known:
            problems.append(unknown(name, known, "integral of motion (the energy or an output)"))
        elif name in reasons:
            problems.append(f"{name!r} cannot be kept: {reasons[name]}")
        elif integral_function(name) not in description.functions:
            problems.append(
                f"{name!r} was not built for the model {description.name!r}: give the projection to kanegen.build, or "
                'name "integrals" in functions='
            )
    require_none(problems, "Projection(integrals=...): ")


def integral_function(name: str) -> str:
    """Name of the compiled function [I_u | I] of an integral of motion."""
    return f"integral:{name}"
