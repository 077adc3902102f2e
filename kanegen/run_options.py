"""The options of a run, each declared once: name, type, default, kind, meaning, and the methods that accept it.

Signatures and docstrings of `integrate`, `integrate_many` and `export_fmu`, their checks, the command line, ensembles,
back ends, FMUs and the C struct ``kg_stepper_options`` follow from this table.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from operator import itemgetter
from types import MappingProxyType
from typing import Annotated, Any, Final, TypedDict, TypeVar, cast, get_type_hints


class Kind(Enum):
    """Kinds of values: how a value is checked, written on the command line, and declared in C."""

    METHOD = auto()
    SECONDS = auto()
    DELAY = auto()
    COUNT = auto()
    TOLERANCE = auto()
    POSITIVE = auto()
    FLAG = auto()
    PROGRESS = auto()
    NAMES = auto()
    MAPPING = auto()
    VALUES = auto()
    TIMES = auto()


C_TYPES: Final = MappingProxyType(
    {Kind.METHOD: "int", Kind.SECONDS: "kg_real", Kind.COUNT: "long long", Kind.TOLERANCE: "const kg_real *"}
)
"""The types of the fields of ``kg_stepper_options``."""


@dataclass(frozen=True)
class Option:
    """An option of a run.

    ``text`` is a sentence for docstrings, the command line, FMUs and C, where 0 stands for None; ``more`` continues it
    in docstrings. ``methods``: ``"fixed"`` or ``"adaptive"``, if only such methods accept the option. ``scipy``:
    whether the solvers of SciPy have it, with which the back end without compiled code integrates.
    """

    default: Any
    kind: Kind
    text: str
    more: str = ""
    methods: str = ""
    scipy: bool = False


class StepOptions(TypedDict, total=False):
    """How steps are chosen: the fields of ``kg_stepper_options`` in C. Add new ones at the end."""

    method: Annotated[
        str,
        Option(
            "dopri5",
            Kind.METHOD,
            "Integration method.",
            '``"dopri5"`` (Dormand and Prince 1980, order 5(4)), ``"dop853"`` (Hairer, Norsett and Wanner 1993, order '
            '8(5,3)), ``"verner9"`` (Verner 2010, order 9(8)) and, for stiff equations, ``"rodas"`` (order 4(3), needs '
            'the Jacobians or, with closed contacts, differences) choose their steps; ``"rk4"`` and '
            '``"kutta_merson"`` have a fixed ``step``.',
            scipy=True,
        ),
    ]
    step: Annotated[float | None, Option(None, Kind.SECONDS, "Step of methods with a fixed step, s.", methods="fixed")]
    first_step: Annotated[
        float | None,
        Option(None, Kind.SECONDS, "First step of adaptive methods, s; None: chosen.", methods="adaptive", scipy=True),
    ]
    max_step: Annotated[
        float | None,
        Option(
            None, Kind.SECONDS, "Largest step of adaptive methods, s; None: no limit.", methods="adaptive", scipy=True
        ),
    ]
    max_steps: Annotated[
        int | None, Option(None, Kind.COUNT, "Largest number of accepted steps; None: no limit.", scipy=True)
    ]
    rtol: Annotated[
        Any,
        Option(
            1e-8,
            Kind.TOLERANCE,
            "Relative tolerance of adaptive methods.",
            "The local error of each component stays near ``atol + rtol |y|``. A number, an array "
            '(n_q + n_u + n_s,), or a mapping from names, ``{"x": 1e-6}``, which leaves the default for the others.',
            scipy=True,
        ),
    ]
    atol: Annotated[
        Any,
        Option(
            1e-10, Kind.TOLERANCE, "Absolute tolerance of adaptive methods.", "A value as for ``rtol``.", scipy=True
        ),
    ]

    min_step: Annotated[
        float | None,
        Option(
            None,
            Kind.SECONDS,
            "Smallest step of adaptive methods, s; None: rounding.",
            "A run that needs shorter steps ends with ``Outcome.STEP_COLLAPSED``. The step that ends a run or leads to "
            "an event may be shorter.",
            methods="adaptive",
        ),
    ]


class ControlOptions(TypedDict, total=False):
    """How a run is controlled."""

    control: Annotated[
        bool,
        Option(
            False,
            Kind.FLAG,
            "Close the loop with the control law of the model.",
            "False: the controls are ordinary inputs. True: the servo-constraints of a ``Servo`` determine the "
            "controls, ``ControlConstraints`` make them part of the state. ``r`` is then a mapping with the other "
            "inputs. See docs/control.md.",
        ),
    ]
    sample_time: Annotated[
        float | None,
        Option(
            None,
            Kind.SECONDS,
            "Time between samples of inputs, s; None: continuous.",
            "The inputs ``r``, or with ``control=True`` the controls of a servo, are computed at multiples of this "
            "time after ``t0``, once each and in order, and held in between.",
        ),
    ]
    delay: Annotated[
        float | None,
        Option(
            None,
            Kind.DELAY,
            "Time from a sample until it acts, s; needs sample_time.",
            "Before the first values act, an input has its default or, without one, the value of the first sample.",
        ),
    ]
    limits: Annotated[
        Any,
        Option(
            None,
            Kind.MAPPING,
            "Limits of the controls of a servo.",
            "For each control its largest magnitude, ``(lowest, highest)`` or None, in a sequence or a mapping by "
            "name; None: those of the model. ``saturation`` and ``warnings`` of ``solution.control`` show the effect.",
        ),
    ]
    y: Annotated[
        Any,
        Option(
            None,
            Kind.VALUES,
            "Free vector of a servo.",
            "A number or (n_tau,), if the model does not fix it; None: zero.",
        ),
    ]
    tau0: Annotated[
        Any,
        Option(
            None,
            Kind.VALUES,
            "Start of controls that are part of the state.",
            "Initial controls (and rates) of control constraints, (n,) in the order of "
            "``description.control_constraints.states``. None: consistent controls of least norm.",
        ),
    ]


class CommonOptions(StepOptions, ControlOptions, total=False):
    """The options that are the same for all motions of an ensemble."""

    events: Annotated[
        Any,
        Option(
            None,
            Kind.NAMES,
            "Names of the model's events to detect.",
            "None: all, ``()``: none. Contacts are always detected.",
        ),
    ]
    modes: Annotated[
        Mapping[str, str] | None,
        Option(
            None,
            Kind.MAPPING,
            "Modes of contacts at the start.",
            'For example ``{"floor": "slip"}``, if several are consistent with the state (:data:`.MODES`); a mode that '
            "is not consistent is replaced. None: the modes must be unique.",
        ),
    ]
    start_tolerance: Annotated[
        float | None,
        Option(
            1e-6,
            Kind.POSITIVE,
            "Largest violation of the constraints at the start.",
            "See :func:`kanegen.solve.consistent.violations`; None: not checked.",
        ),
    ]


class RunOptions(CommonOptions, total=False):
    """The options of :meth:`kanegen.Solver.integrate`."""

    t_eval: Annotated[
        Any,
        Option(
            None,
            Kind.TIMES,
            "Times at which the solution is stored.",
            "They are within the span, and sorted in its direction; None: every step. The solution has no times after "
            "a terminal event.",
        ),
    ]
    dense_output: Annotated[
        bool,
        Option(
            True,
            Kind.FLAG,
            "Store what is needed between the steps.",
            "This is what ``solution(t)`` needs: k (n_q + n_u) numbers per step, k = 4 to 9; dop853 then needs three "
            "more evaluations per step, and verner9 four.",
        ),
    ]
    sensitivities: Annotated[
        Any,
        Option(
            None,
            Kind.NAMES,
            "Names of what the motion is differentiated with respect to.",
            "Parameters, start values (by the names of coordinates, speeds and states) and inputs; the result "
            "is ``solution.sensitivities``. See docs/gradients.md.",
        ),
    ]
    sensitivity_tolerance: Annotated[
        float | None,
        Option(
            None,
            Kind.POSITIVE,
            "Largest local error of a derivative, relative to its size.",
            "The run is repeated with shorter steps until sensitivities and gradients satisfy it; None: 100 ``rtol``, "
            "because derivatives follow the motion's own steps, with which few of them have larger errors.",
        ),
    ]
    progress: Annotated[
        bool | Callable[[float], None],
        Option(
            False,
            Kind.PROGRESS,
            "Show a progress bar in long runs.",
            "False: a line that names runs of more than a second, in terminals and notebooks. A function: it is called "
            "with the time about every 20 ms.",
        ),
    ]


@cache
def table(options: type) -> Mapping[str, Option]:
    """The options of one of these classes by name, in order."""
    hints = get_type_hints(options, include_extras=True)
    return MappingProxyType({name: hint.__metadata__[0] for name, hint in hints.items()})


@cache
def defaults(options: type) -> Mapping[str, Any]:
    """The default of each option."""
    return MappingProxyType({name: option.default for name, option in table(options).items()})


def step_limit(options: StepOptions) -> int | None:
    """The largest number of accepted steps; None: no limit."""
    return options.get("max_steps")


def stepping(options: StepOptions) -> StepOptions:
    """The options of the steps among those of a run."""
    return cast(StepOptions, dict(zip(_STEP_NAMES, _step_values(options), strict=True)))


_STEP_NAMES: Final = tuple(table(StepOptions))
_step_values: Final = itemgetter(*_STEP_NAMES)


Call = TypeVar("Call", bound=Callable[..., Any])


def takes(options: type, **others: Any) -> Callable[[Call], Call]:
    """Decorate a function whose ``**options`` are those of a class: its signature and docstring name them.

    ``others``: defaults that are not those of the table.
    """

    def decorate(function: Call) -> Call:
        known, signature, kind = {**defaults(options), **others}, inspect.signature(function), inspect.Parameter
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        own += [kind(name, kind.KEYWORD_ONLY, default=value) for name, value in known.items()]
        function.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        function.__doc__ = _documented(inspect.getdoc(function) or "", options)
        return function

    return decorate


_PLACE: Final = "**options\n"
"""The line of a docstring that the entries of all options replace, with the line after it."""


def _documented(text: str, options: type) -> str:
    before, place, after = text.partition(_PLACE)
    entries = map(_entry, table(options).items()) if place else ()
    return before + "".join(entries) + after.partition("\n")[2]


def _entry(item: tuple[str, Option]) -> str:
    name, option = item
    text, indent = f"{option.text} {option.more}".strip(), "    "
    return (
        f"{name}\n{textwrap.fill(text, 112, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)}\n"
    )
