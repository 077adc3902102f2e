"""The compiled functions of a model with the parameters of one solver, and the reasons why some cannot be called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from threading import RLock
from types import MappingProxyType
from typing import Any, Final, NoReturn

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.backends.points import Point
from kanegen.backends.protocol import Build, Evaluator
from kanegen.codegen.description import Description
from kanegen.errors import BuildError, NotBuiltError, SolveError
from kanegen.program.catalogue import CATALOGUE, spec_of
from kanegen.solve.values import (
    by_array,
    by_name,
    input_array,
    number,
    state_arrays,
)

_BUILDING: Final = RLock()
"""Held while functions are built that were left out, so that threads do not build the same ones."""

_OTHER_SPEEDS: Final = ("momentum_rhs", "speeds_from_momentum", "new_speeds")
"""Functions whose argument u is not that of the speeds of the model, so that names and ``initial`` do not apply."""

DISTURBANCE: Final = 8.0 * float(np.finfo(float).eps)
"""Relative error of arguments: some roundings, so that the roundings inside a function count as much."""

SAMPLES: Final = 6
"""Disturbed evaluations of a function."""


def disturbed(values: Array, seed: int, errors: Array | float = 0.0) -> Array:
    """The values with relative errors that depend on the seed only, and with absolute ``errors``."""
    return np.asarray(values + _signs(np.shape(values), seed) * (DISTURBANCE * np.abs(values) + errors))


@lru_cache(maxsize=1024)
def _signs(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).choice([-1.0, -0.5, 0.5, 1.0], shape)


class CompiledFunctions:
    """Compiled functions by name.

    ``parameters`` (n_p,) in the order of the description, NaN where a value is missing; ``gains`` (n_g,); ``initial``
    completes states that are given by name.
    ``derived``: functions of further programs of the model, which others keep here.
    Each compiled function has its own work space and is called under the global interpreter lock, so that threads can
    share it.
    """

    def __init__(
        self,
        extension: Build,
        description: Description,
        parameters: Array,
        gains: Array,
        initial: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.module = module = extension.module
        check_names(module, description)
        self._made_from: tuple[Any, ...]
        self._made_from, self.description = (extension, description, parameters, gains, dict(initial)), description
        self._initial = initial
        self._read: dict[tuple[str, ...], tuple[frozenset[int], frozenset[int]]] = {}
        self._beside: dict[tuple[str, ...], Array] = {}
        self._functions: dict[str, Any] = {}
        self.derived: dict[Any, Any] = {}
        self._parts: dict[tuple[str, ...], CompiledFunctions] = {}
        self._unset = frozenset(np.flatnonzero(np.isnan(parameters)).tolist())
        defaults = [np.nan if slot.default is None else slot.default for slot in description.input_slots]
        self._defaults: Array = np.array(defaults, dtype=np.float64)
        self.prepared = module.Prepared(parameters, gains, self._avoidable(), bool(self._unset))

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledFunctions, self._made_from

    def _avoidable(self) -> set[int]:
        """Indices of the constants that only functions evaluated on request need."""
        requested, inside = set[int](), set[int]()
        for name, entry in self.description.functions.items():
            spec = spec_of(name)
            (requested if spec and spec.on_request else inside).update(entry.fallible_constants)
        return requested - inside

    @property
    def extension(self) -> Build:
        """The build to which the functions belong."""
        extension: Build = self._made_from[0]
        return extension

    @property
    def parameters(self) -> Array:
        """The values of the parameters (n_p,), NaN where they are missing."""
        values: Array = self._made_from[2]
        return values

    def having(self, *names: str) -> CompiledFunctions:
        """The functions, with these in one module: the functions themselves, or a part with those that were left out.

        Raises `BuildError`, which names the functions, if the part cannot be derived or compiled.
        """
        missing = [name for name in names if name in self.description.deferred]
        if not missing:
            return self
        wanted = self._entries(names)
        with _BUILDING:
            if wanted not in self._parts:
                self._parts[wanted] = self._part(wanted, missing)
        return self._parts[wanted]

    def _part(self, entries: tuple[str, ...], missing: Iterable[str]) -> CompiledFunctions:
        """The functions of entries of the catalogue, with the same parameters; errors name those that were missing."""
        extension, description, *values = self._made_from
        try:
            built = extension.more(entries)
        except BuildError as error:
            what = ", ".join(name.removeprefix("output:") for name in missing)
            raise BuildError(
                f"{what} of the model {description.name!r}, compiled on first use, cannot be built: {error}",
                command=error.command,
                stderr=error.stderr,
                folder=error.folder,
            ) from error
        part = CompiledFunctions(built, built.description, *values)
        if description.laws:
            part._laws = self._laws
        return part

    def _entries(self, names: Iterable[str]) -> tuple[str, ...]:
        """The entries of the catalogue for functions; those of one group that were left out are built together."""
        specs = [spec for name in names if (spec := spec_of(name)) is not None]
        groups = {spec.group for spec in specs} - {""}
        others = (spec for name in self.description.deferred if (spec := spec_of(name)) and spec.group in groups)
        wanted = {spec.name for spec in (*specs, *others)}
        return tuple(name for name in CATALOGUE if name in wanted)

    def get(self, name: str) -> Any:
        """The ``Function`` of the module. Raises `SolveError` with the reason if it cannot be called."""
        if name not in self._functions:
            self._functions[name] = self.new(name)
        return self._functions[name]

    def new(self, name: str) -> Any:
        """A new ``Function``, with a counter of repartitions of its own; otherwise like `get`."""
        home = self.having(name)
        home.require([name])
        named = None if name in _OTHER_SPEEDS else self._arrays
        of_call = home.defaults_of([name])
        return home.module.Function(name, home.prepared, of_call.r, named, of_call.s)

    def _arrays(self, q: Any, u: Any, r: Any, s: Any) -> tuple[Any, ...]:
        """A state and inputs as arrays, from mappings by name or arrays."""
        q, u, s = state_arrays(self.description, self._initial, q, u, s)
        return q, u, input_array(self.description, r, self._defaults) if isinstance(r, Mapping) else r, s

    def arrays_for(self, name: str, at: Point) -> Point:
        """The arguments of a function as arrays, with values by name and those that are missing, as in its calls."""
        t, q, u, r, s, *others = at
        named = not (by_array(q) and by_array(u) and (r is None or by_array(r)) and (s is None or by_array(s)))
        return Point(t, *self._arrays(q, u, r, s), *others) if named and name not in _OTHER_SPEEDS else at

    def defaults_of(self, names: Iterable[str]) -> Point:
        """The default arguments of functions, (n,) each: NaN for inputs and states without a default that one of them
        reads, else zero; no state."""
        d, of_contacts = self.description, self.description.contacts.rows
        r, s = np.nan_to_num(self._defaults), np.zeros(len(d.states))
        inputs, states = self.reads(names)
        r[list(inputs)], s[list(states)] = self._defaults[list(inputs)], np.nan
        return Point(None, None, None, r, s, np.zeros(len(of_contacts)), np.zeros(len(d.free_controls)))

    def with_parameters(self, values: Mapping[int, float]) -> CompiledFunctions:
        """The functions with other values of some parameters, by index. Raises `SolveError` for impossible values."""
        extension, description, parameters, gains, initial = self._made_from
        changed = parameters.copy()
        for i, value in values.items():
            changed[i] = number(value, f"parameter {description.parameters[i]}")
        return CompiledFunctions(extension, description, changed, gains, initial)

    @cached_property
    def disturbed(self) -> tuple[CompiledFunctions, ...]:
        """The functions with relative errors of the parameters, different ones in each of ``SAMPLES`` samples."""
        return tuple(self._disturbed(seed) for seed in range(SAMPLES))

    def _disturbed(self, seed: int) -> CompiledFunctions:
        known = np.flatnonzero(np.isfinite(self.parameters)).tolist()
        new = disturbed(self.parameters, SAMPLES + seed)
        try:
            return self.with_parameters({k: float(new[k]) for k in known})
        except SolveError:  # outside the domain of an expression of parameters
            return self

    def require(self, names: Iterable[str]) -> None:
        """Raise `SolveError` with the reason if one of these functions cannot be called."""
        for name in names:
            if (problem := self.problem(name)) is not None:
                raise self._error(name, problem)

    def reads(self, names: Iterable[str]) -> tuple[frozenset[int], frozenset[int]]:
        """The indices of the inputs and of the states that at least one of these functions reads."""
        listed = tuple(names)
        if listed not in self._read:
            entries = [self.having(name).description.functions.get(name) for name in listed]
            inputs = (e.inputs for e in entries if e is not None)
            states = (e.states for e in entries if e is not None)
            self._read[listed] = frozenset[int]().union(*inputs), frozenset[int]().union(*states)
        return self._read[listed]

    def inputs_read(self, names: Iterable[str]) -> frozenset[int]:
        """The indices of the inputs that at least one of these functions reads."""
        return self.reads(names)[0]

    def complete(self, at: Point, names: Iterable[str]) -> Point:
        """The arguments of several functions that are called together, with defaults of inputs and states.

        Raises `SolveError` where one of the functions reads an input or a state without a default.
        """
        d, listed = self.description, list(names)
        r = input_array(d, at.r, self._defaults) if isinstance(at.r, Mapping) else at.r
        defaults = self.defaults_of(listed)
        missing = [name for name, x in zip(d.inputs, defaults.r, strict=True) if r is None and np.isnan(x)]
        missing += [name for name, x in zip(d.states, defaults.s, strict=True) if at.s is None and np.isnan(x)]
        if missing:
            raise SolveError(
                f"{', '.join(listed)} need values of inputs or states without a default: {', '.join(missing)}; pass "
                "r= and s=, or give each Input a default"
            )
        return at._replace(r=defaults.r if r is None else r, s=defaults.s if at.s is None and d.states else at.s)

    @property
    def law_values(self) -> Callable[..., Any] | None:
        """The function of (t, q, u, r, s) with the values of all feedback laws; None without laws."""
        return self._laws.value if self.description.laws else None

    @cached_property
    def _laws(self) -> Any:
        return self.get("laws")

    def with_laws(self, names: Iterable[str], t: Any, q: Any, u: Any, r: Any, s: Any) -> Any:
        """The inputs with the values of the laws wherever ``r`` does not give them; an array ``r`` gives all inputs.

        None remains None if none of the functions reads an input with a law. Otherwise the result is an array, with a
        row for each state. Raises `SolveError` for inputs with neither a value nor a law: of a mapping all of them, of
        None those that one of the functions, or a law, reads.
        """
        listed = tuple(names)
        if isinstance(r, Mapping):
            others, slots = self.beside_laws(listed, r)
            return others if not slots else self.laws_in(others, slots, self._law_values(t, q, u, others, s))
        if r is not None or self.inputs_read(listed).isdisjoint(self.description.laws):
            return r
        others, slots = self.beside_laws(listed, None)
        return self.laws_in(others, slots, self._law_values(t, q, u, None, s))

    def _law_values(self, t: Any, q: Any, u: Any, r: Any, s: Any) -> Array:
        return np.asarray(self._laws.value(t, q, u, r, s))

    def laws_in(self, others: Array, slots: Sequence[int], values: Array) -> Array:
        """The inputs ``others`` (..., n_r) with those ``values`` of all laws (..., n) that belong to ``slots``."""
        places = [list(self.description.laws).index(slot) for slot in slots]
        array: Array = np.empty((*np.broadcast_shapes(others.shape[:-1], values.shape[:-1]), others.shape[-1]))
        array[:] = others
        array[..., list(slots)] = values[..., places]
        return array

    def beside_laws(self, names: tuple[str, ...], r: Mapping[Any, Any] | None) -> tuple[Array, tuple[int, ...]]:
        """The inputs of these functions, (n_r,) or (N, n_r), with zeros where laws give them, and the slots of these.

        A mapping replaces the laws of the inputs that it names. The rate of an input that it names has no law either,
        because the law would be that of the other motion. Raises `SolveError` for inputs without a value.
        """
        if r is None:
            return self._beside_laws(names), tuple(self.description.laws)
        d = self.description
        named = by_name(r, d.inputs, "input")
        slots = tuple(slot for slot in d.laws if d.inputs[slot] not in named and not self._is_rate_of(slot, named))
        zeros = {d.inputs[slot]: 0.0 for slot in slots}
        return input_array(d, named | zeros, self._defaults), slots

    def _is_rate_of(self, slot: int, named: Mapping[str, Any]) -> bool:
        base = self.description.input_slots[slot].rate_of
        return base is not None and (self.description.inputs[base] in named or self._is_rate_of(base, named))

    def _beside_laws(self, names: tuple[str, ...]) -> Array:
        """The inputs (n_r,) with the defaults that these functions read; those with a law are zero.

        Raises `SolveError` where one of the functions reads an input that has neither.
        """
        if names not in self._beside:
            values = self.defaults_of(names).r
            values[list(self.description.laws)] = 0.0
            missing = [name for name, x in zip(self.description.inputs, values, strict=True) if np.isnan(x)]
            if missing:
                raise SolveError(
                    f"{', '.join(names)} need values of inputs without a default: {', '.join(missing)}; pass "
                    f"r={{{missing[0]!r}: ...}}, or give each Input a default or a law"
                )
            self._beside[names] = values
        return self._beside[names]

    def inputs_beside_laws(self, r: Any) -> Array:
        """The inputs ``r``, an array (n_r,) or a mapping, with zeros in place of those with a law, (n_r,).

        Raises `SolveError` for wrong shapes, unknown names and missing values.
        """
        d = self.description
        laws = dict.fromkeys((d.inputs[slot] for slot in d.laws), 0.0)
        if isinstance(r, Mapping):
            return input_array(d, by_name(r, d.inputs, "input") | laws, self._defaults)
        inputs = real_array(r, "r")
        if inputs.shape != (len(d.inputs),):
            raise SolveError(f"r has shape {inputs.shape}; expected ({len(d.inputs)},): {', '.join(d.inputs)}")
        inputs[list(d.laws)] = 0.0
        return inputs

    def in_run(self, *names: str) -> tuple[str, ...]:
        """These functions and those that every run of the model calls: contacts, guards of events, impulses."""
        return (*names, *self._every_run)

    @cached_property
    def _every_run(self) -> tuple[str, ...]:
        specs = {name: spec_of(name) for name in self.module.FUNCTIONS}
        return tuple(name for name, spec in specs.items() if spec is None or spec.every_run)

    def of_parameters(self, name: str) -> Any:
        """The value of a function that depends on the parameters only."""
        d = self.description
        return self.get(name).value(0.0, *map(np.zeros, (len(d.coordinates), len(d.speeds), len(d.inputs))))

    def require_finite(self, names: Iterable[str], at: Point) -> None:
        """Raise `SolveError` if one of the functions, as far as they were built, is not finite; it names the entry."""
        for name in names:
            if name in self.module.FUNCTIONS and self.problem(name) is None:
                at.evaluate(self.get(name).value)

    def problem(self, name: str, *, constants: bool = True) -> str | None:
        """Why the function cannot be called; None when it can.

        ``constants``: whether what depends on the parameters only must have a value.
        """
        if name in self.description.deferred:
            return self.having(name).problem(name, constants=constants)
        model, public = self.description.name, name.removeprefix("output:")
        if name in self.description.unavailable:
            return f"{public} does not exist for the model {model!r}: {self.description.unavailable[name]}"
        if name not in self.module.FUNCTIONS:
            spec = spec_of(name)
            if spec is not None and spec.group == "jacobians":
                return (
                    f"the model {model!r} was built without Jacobians (here {public}): give "
                    'functions=("rhs", "residuals", "jacobians") or functions="all" to kanegen.build'
                )
            return (
                f"{public} was not built for the model {model!r}: name it in functions= of kanegen.build. "
                f"The functions that were built are {', '.join(self.module.FUNCTIONS)}"
            )
        entry, parameters = self.description.functions[name], self.description.parameters
        if missing := [parameters[i] for i in sorted(self._unset.intersection(entry.parameters))]:
            return (
                f"{public} needs values of the parameters {', '.join(missing)}: give parameters= to kanegen.Model, or "
                f"solver.with_parameters({{{missing[0]!r}: ...}})"
            )
        if constants and not set(entry.fallible_constants).isdisjoint(self.prepared.undefined):
            return f"{public} cannot be evaluated: the equations of {model!r} {self.prepared.complaint}"
        return None

    def _error(self, name: str, problem: str) -> SolveError:
        return SolveError(problem) if name in self.module.FUNCTIONS else NotBuiltError(problem)

    def call(self, name: str, method: str = "value") -> Callable[..., Any]:
        """A bound method of the compiled function, or a function that raises `SolveError` with the reason."""
        d = self.description
        sizes = CATALOGUE[name].shape if name in CATALOGUE else ()
        if "n_i" in sizes and d.dependent and not d.independent:
            # Without independent speeds these functions have no entries, and C has no arrays without elements.
            shape = tuple({"n_i": 0, "n_d": len(d.dependent), "n_u": len(d.speeds)}[size] for size in sizes)
            return _empty(self.module, shape)
        if name in d.deferred:
            return Deferred(lambda: self._call(name, method))
        return self._call(name, method)

    def _call(self, name: str, method: str) -> Callable[..., Any]:
        if (problem := self.problem(name)) is not None:
            return refusal(self._error(name, problem))
        call: Callable[..., Any] = getattr(self.get(name), method)
        if not self.description.laws or name in _OTHER_SPEEDS:
            return call
        return self._ode_with_laws(name, call) if method == "ode" else self._call_with_laws(name, call)

    def _call_with_laws(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function of a state whose inputs are those of the laws, unless they are given."""

        def value(
            t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None, free: Any = None
        ) -> Any:
            return call(t, q, u, self.with_laws([name], t, q, u, r, s), s, out, forces, free)

        return value

    def _ode_with_laws(self, name: str, ode: Callable[..., Any]) -> Callable[..., Any]:
        d = self.description
        ends = len(d.coordinates), len(d.coordinates) + len(d.speeds)

        def value(t: Any, y: Any, r: Any = None) -> Any:
            q, u, s = np.split(real_array(y, "y"), ends)
            return ode(t, y, self.with_laws([name], t, q, u, r, s if d.states else None))

        return value


class Deferred:
    """A function that ``make`` returns at the first call."""

    def __init__(self, make: Callable[[], Callable[..., Any]]) -> None:
        self._make = make

    @cached_property
    def function(self) -> Callable[..., Any]:
        return self._make()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.function(*arguments, **options)


def check_names(module: Evaluator, description: Description) -> None:
    """Raise `BuildError` if the compiled module and the description belong to different models."""
    for what, compiled, described in (
        ("coordinates", module.COORDINATES, description.coordinates),
        ("speeds", module.SPEEDS, description.speeds),
        ("inputs", module.INPUTS, description.inputs),
        ("states", module.STATES, description.states),
        ("parameters", module.PARAMETERS, description.parameters),
        ("number of gains", module.N_GAINS, description.constraints.n_gains),
    ):
        if compiled != described:
            raise BuildError(
                f"the compiled model {module.NAME!r} has the {what} {compiled}, but its description {described}: they "
                "are of different models; clear the cache and build again"
            )


def _empty(module: Evaluator, shape: tuple[int, ...]) -> Callable[..., Array]:
    def value(
        t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None, free: Any = None
    ) -> Any:
        rows = module.checked_state(t, q, u)[0].shape[:-1]
        return np.empty((*rows, *shape)) if out is None else out

    return value


def refusal(error: SolveError) -> Callable[..., NoReturn]:
    """A function of any arguments that raises this error."""

    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise type(error)(str(error))

    return refuse
