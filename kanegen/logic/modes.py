"""Named modes of a model, between which events switch: gears, phases of a gait, a thermostat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import numpy as np
import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import ModelError, brief
from kanegen.model import Event
from kanegen.model.expressions import symbol_name
from kanegen.model.records import FrozenMapping, Machine, MachineParts

_HALF: Final = sympy.Rational(1, 2)


@dataclass(frozen=True)
class Transition:
    """A change of mode: in the mode ``source``, the guard comes to have the sign of ``direction``.

    Parameters
    ----------
    source, target
        Names of modes.
    guard
        Expression of t, q, q', u, states, inputs, parameters and ``kg.Multiplier`` symbols, as for ``kg.Event``. If the
        mode begins while the guard has this sign already, the transition follows at the same instant.
    direction
        +1: the guard becomes positive; -1: it becomes negative.
    name
        Name of the event in results. None: ``"<modes>: <source> -> <target>"``.
    reset, impulse, impose, remove, terminal
        Further actions, as those of ``kg.Event``.
    """

    source: str
    target: str
    guard: Any
    direction: int = 1
    name: str | None = None
    reset: Mapping[Any, Any] = field(default_factory=dict)
    impulse: str | None = None
    impose: Any = ()
    remove: Any = ()
    terminal: bool = False


class Modes(Machine):
    """Modes of a model, one of which acts at a time, and the transitions between them.

    The mode is a state of the model with the name ``name``, whose values are the places in ``modes``: 0, 1, ... Nothing
    but transitions changes it; these are events and located as such. Give the object to ``Model(modes=...)``.

    Parameters
    ----------
    name
        Name of the state: ``solution["gear"]``, ``s0={"gear": 1}``.
    modes
        Names of the modes, two or more.
    transitions
        :class:`Transition` records. Where two from the same mode are due at the same instant, a run is an error.
    start
        The mode at the start of a motion, unless ``s0`` or ``initial`` says otherwise. None: the first one.
    latches
        Names of the latches (``kg.Latch``) that are closed in a mode, by the name of the mode. Transitions close and
        open them; they are closed at the start if the first mode says so.
    final
        Names of modes that have no transition to another one on purpose.

    Attributes
    ----------
    symbol
        The state, a dynamic symbol.

    Raises
    ------
    ModelError
        For names that are not unique or do not exist, a direction that is neither 1 nor -1, and modes that no
        transition leaves and that are not ``final``.

    Examples
    --------
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> T = dynamicsymbols("T")
    >>> heating = Modes(
    ...     "heating",
    ...     ("off", "on"),
    ...     [Transition("off", "on", T - 19, direction=-1), Transition("on", "off", T - 21)],
    ... )
    >>> heating.choose(on=2, off=0)
    Piecewise((0, heating(t) < 1/2), (2, True))
    """

    def __init__(
        self,
        name: str,
        modes: Sequence[str],
        transitions: Iterable[Transition],
        *,
        start: str | None = None,
        latches: Mapping[str, Any] | None = None,
        final: Iterable[str] = (),
    ) -> None:
        self.name, self.modes, self.transitions = name, tuple(modes), tuple(transitions)
        self.latches = FrozenMapping(
            (mode, (given,) if isinstance(given, str) else tuple(given)) for mode, given in (latches or {}).items()
        )
        self.final = (final,) if isinstance(final, str) else tuple(final)
        self.start = start if start is not None else (self.modes or ("",))[0]
        if problems := list(self._problems()):
            raise ModelError(problems)
        self.symbol: Any = dynamicsymbols(name)

    def __repr__(self) -> str:
        return f"<Modes {self.name!r}: {', '.join(self.modes)}; {len(self.transitions)} transitions>"

    def _problems(self) -> Iterable[str]:
        """What is wrong with the arguments."""
        title = f"the modes {self.name!r}"
        if not isinstance(self.name, str) or not self.name.isidentifier():
            yield f"modes have the name {brief(self.name)}: expected a name of a symbol, such as 'gear'"
            return
        if len(self.modes) < 2 or not all(isinstance(x, str) for x in self.modes):
            yield f"{title} are {brief(self.modes)}: expected two names or more"
            return
        if repeated := [x for k, x in enumerate(self.modes) if x in self.modes[:k]]:
            yield f"{title} have the name {repeated[0]!r} twice"
        named = [("start", self.start), *(("latches", x) for x in self.latches), *(("final", x) for x in self.final)]
        for k, transition in enumerate(self.transitions):
            where = f"transitions[{k}]"
            if not isinstance(transition, Transition):
                yield f"{title}: {where} is {brief(transition)}, expected a kg.Transition"
                return
            named += [(f"{where}.source", transition.source), (f"{where}.target", transition.target)]
            if transition.direction not in (1, -1):
                yield f"{title}: {where} has direction={brief(transition.direction)}; expected 1 or -1"
            if self.name in map(symbol_name, transition.reset):
                yield f"{title}: {where} resets {self.name}: its target is the new mode"
            if transition.source == transition.target:
                yield f"{title}: {where} leads from {transition.source!r} to itself: give a kg.Event with when="
        yield from (f"{title}: {where}: {self._no_mode(x)}" for where, x in named if x not in self.modes)
        left = {*self.final, *(transition.source for transition in self.transitions)}
        for mode in self.modes:
            if mode not in left:
                yield f"{title}: no transition leaves {mode!r}: give one, or final=({mode!r},) if this is the end"

    def _no_mode(self, name: Any) -> str:
        return f"{brief(name)} is no mode; expected one of {', '.join(map(repr, self.modes))}"

    # -- expressions ------------------------------------------------------------------------------------------------

    def choose(self, values: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """The value of the present mode: a SymPy expression for loads, laws, rates and outputs.

        ``values`` and ``more``: an expression for each mode, by name; ``"otherwise"`` is that of modes without one.
        Raises `ModelError` for names that are no modes, and if a mode has no value.
        """
        given = {**(values or {}), **more}
        for name in given:
            if name not in (*self.modes, "otherwise"):
                raise ModelError(f"the modes {self.name!r}: {self._no_mode(name)}")
        missing = [mode for mode in self.modes if mode not in given]
        if missing and "otherwise" not in given:
            raise ModelError(f"the modes {self.name!r}: no value for {missing[0]!r}; give one, or otherwise=")
        chosen = [sympy.sympify(given.get(mode, given.get("otherwise"))) for mode in self.modes]
        cases = [(value, self.symbol < k + _HALF) for k, value in enumerate(chosen[:-1])]
        return sympy.Piecewise(*cases, (chosen[-1], True))

    def is_in(self, *names: str) -> Any:
        """1 in these modes, 0 in the others, a SymPy expression."""
        return self.choose({**dict.fromkeys(names, 1), "otherwise": 0})

    def name_of(self, values: Any) -> Any:
        """The names of the modes with these values of the state: a text, or an array of texts.

        Raises `ModelError` for values that no mode has.
        """
        given = np.asarray(values, dtype=np.float64)
        if not np.isin(given, np.arange(len(self.modes))).all():
            wrong = given[~np.isin(given, np.arange(len(self.modes)))].flat[0]
            raise ModelError(
                f"the modes {self.name!r}: there is no mode {wrong:g}; the values are 0 to {len(self.modes) - 1}"
            )
        found = np.array(self.modes)[given.astype(int)]
        return str(found) if found.ndim == 0 else found

    # -- what models take -------------------------------------------------------------------------------------------

    def parts(self) -> MachineParts:
        """The state, its start, the events, and the latches that are closed at the start."""
        known = {latch for names in self.latches.values() for latch in names}
        closed = {latch: latch in self.latches.get(self.start, ()) for latch in known}
        events = tuple(self._event(transition) for transition in self.transitions)
        start = {self.symbol: self.modes.index(self.start)}
        return MachineParts({self.symbol: 0}, start, events, closed, {self.symbol: self.modes})

    def _event(self, transition: Transition) -> Event:
        """The event of a transition."""
        source, target = (self.modes.index(x) for x in (transition.source, transition.target))
        before, after = (self.latches.get(x, ()) for x in (transition.source, transition.target))
        impose, remove = (tuple([x] if isinstance(x, str) else x) for x in (transition.impose, transition.remove))
        return Event(
            name=transition.name or f"{self.name}: {transition.source} -> {transition.target}",
            guard=transition.guard,
            direction=transition.direction,
            terminal=transition.terminal,
            impulse=transition.impulse,
            impose=reduce(_with, (x for x in after if x not in before), impose),
            remove=reduce(_with, (x for x in before if x not in after), remove),
            reset={**transition.reset, self.symbol: target},
            when={self.symbol: source},
        )


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The names with a further one."""
    return names if name in names else (*names, name)
