"""Several problems of optimal control that are solved together: trials of one experiment, phases of one motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from kanegen.control.ipopt import Progress
from kanegen.control.joints import CompiledJoint, Joint, compiled_joint, read_joint
from kanegen.control.motion import OptimalMotion
from kanegen.control.problem import OptimalControl, solved
from kanegen.errors import SolveError, brief


class Together:
    """Problems whose costs are added, and whose unknown parameters of the same name have one value."""

    _joints: tuple[Joint, ...] = ()

    def __init__(self, problems: Sequence[OptimalControl]) -> None:
        given = tuple(problems) if isinstance(problems, Sequence) else ()
        if not given or not all(isinstance(each, OptimalControl) for each in given):
            raise SolveError(f"problems is {brief(problems)}; expected a sequence of kanegen.OptimalControl")
        _require_bounds(given)
        self.problems = given

    def solve(
        self,
        tolerance: float = 1e-6,
        *,
        guesses: Sequence[Any] | None = None,
        callback: Callable[[Progress], Any] | None = None,
        max_iterations: int = 3000,
        max_refinements: int = 8,
        starts: int = 1,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[OptimalMotion, ...]:
        """Solve the problems together; each motion is an :class:`OptimalMotion` with its own cost.

        ``guesses``: for each problem, as ``guess`` of :meth:`OptimalControl.solve`, whose other arguments these are.
        Iterations and times are those of all problems.

        Raises
        ------
        OptimalControlError
            If the solver fails; its ``motion`` holds the motions that were reached, in a tuple.
        SolveError
            As :meth:`OptimalControl.solve`.
        """
        if guesses is not None and (not isinstance(guesses, Sequence) or len(guesses) != len(self.problems)):
            raise SolveError(f"guesses is {brief(guesses)}; expected a sequence with one for each problem, or None")
        given = guesses if guesses is not None else [None] * len(self.problems)
        return solved(
            self.problems, given, tolerance, callback=callback, max_iterations=max_iterations,
            max_refinements=max_refinements, starts=starts, options=options, joints=self._compiled,
        )  # fmt: skip

    @cached_property
    def _compiled(self) -> tuple[CompiledJoint, ...]:
        statements = [each.statement for each in self.problems]
        return tuple(compiled_joint(joint, statements) for joint in self._joints)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: not the compiled functions, which the cache of builds has."""
        return {name: value for name, value in vars(self).items() if name != "_compiled"}

    def __repr__(self) -> str:
        names = dict.fromkeys(name for each in self.problems for name in each.parameter_names)
        return (
            f"<{type(self).__name__}: {len(self.problems)} problems; unknown parameters {', '.join(names) or 'none'}>"
        )


class Trials(Together):
    """Problems of optimal control that share unknown parameters, such as the trials of an experiment.

    The sum of their costs is minimized. Unknown parameters of the same name have one value in all problems, with bounds
    that all allow; everything else, the models too, can differ.

    Parameters
    ----------
    problems
        A sequence of :class:`kanegen.OptimalControl`.

    Raises
    ------
    SolveError
        For something else than problems, and for bounds of a parameter that contradict each other.

    Examples
    --------
    A mass that two trials with different forces identify:

    >>> import kanegen as kg
    >>> import sympy as sm
    >>> from sympy.physics import mechanics as me
    >>> x, v, F = me.dynamicsymbols("x v F")
    >>> m, z = sm.symbols("m z")
    >>> N, O = me.ReferenceFrame("N"), me.Point("O")
    >>> O.set_vel(N, 0)
    >>> P = O.locatenew("P", x * N.x)
    >>> P.set_vel(N, v * N.x)
    >>> model = kg.Model(name="block", frame=N, coordinates=(x,), speeds=(v,), kinematics=(x.diff() - v,),
    ...                  bodies=(me.Particle("block", P, m),), loads=((P, F * N.x),), inputs=(F,), parameters={m: 1.0})
    >>> def trial(force, measured):
    ...     cost = kg.SampleSum((x - z) ** 2, [0.5, 1.0], {z: measured})
    ...     return kg.OptimalControl(model, cost, duration=1.0, start={x: 0, v: 0}, bounds={F: (force, force)},
    ...                              parameters={m: (0.1, 10.0)}, intervals=10)
    >>> first, second = kg.Trials([trial(1.0, [0.0625, 0.25]), trial(2.0, [0.125, 0.5])]).solve()
    >>> round(first.parameters["m"], 6), round(second.parameters["m"], 6)
    (2.0, 2.0)
    """


class Phases(Together):
    """Problems of optimal control whose motions follow each other, each with its own model, duration and conditions.

    The sum of their costs is minimized, and unknown parameters of the same name have one value. The time of each phase
    begins at 0.

    Parameters
    ----------
    problems
        A sequence of :class:`kanegen.OptimalControl`, in the order of the phases.
    joints
        For each phase but the first, what it begins with: a mapping from coordinates, speeds and states of this phase
        to expressions of the symbols of the phase before, at its end, or to None for what is free. What is not named
        goes on, if both phases have a component of this name. Or a :class:`kanegen.PlasticImpact`. None: everything
        goes on in all phases.
    closing
        The same for the first phase, which follows the last one: the motion is periodic. None: it is not.

    Raises
    ------
    SolveError
        For something else than problems, unknown names, and bounds of what is shared that contradict each other.

    Examples
    --------
    A block is pushed for as long as wanted up to a wall, and comes back with half its speed:

    >>> import kanegen as kg
    >>> from sympy.physics import mechanics as me
    >>> x, v, F = me.dynamicsymbols("x v F")
    >>> N, O = me.ReferenceFrame("N"), me.Point("O")
    >>> O.set_vel(N, 0)
    >>> P = O.locatenew("P", x * N.x)
    >>> P.set_vel(N, v * N.x)
    >>> model = kg.Model(name="block", frame=N, coordinates=(x,), speeds=(v,), kinematics=(x.diff() - v,),
    ...                  bodies=(me.Particle("block", P, 1),), loads=((P, F * N.x),), inputs=(F,))
    >>> span, limits = (0.1, 10.0), {F: (-1, 1)}
    >>> there = kg.OptimalControl(model, kg.Duration, span, {x: 0, v: 0}, {x: 1}, limits, intervals=10)
    >>> back = kg.OptimalControl(model, kg.Duration, span, None, {x: 0, v: 0}, limits, intervals=10)
    >>> first, second = kg.Phases([there, back], joints=[{v: -v / 2}]).solve()
    >>> bool(abs(second.solution["v"][0] + first.solution["v"][-1] / 2) < 1e-9)
    True
    """

    def __init__(
        self, problems: Sequence[OptimalControl], joints: Sequence[Any] | None = None, closing: Any = None
    ) -> None:
        super().__init__(problems)
        n = len(self.problems) - 1
        given = [None] * n if joints is None else joints
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != n:
            raise SolveError(
                f"joints is {brief(joints)}; expected a sequence with {n}, one for each phase but the first"
            )
        statements = [each.statement for each in self.problems]
        found = [read_joint(statements, (k, k + 1), own, f"joints[{k}]") for k, own in enumerate(given)]
        if closing is not None:
            found.append(read_joint(statements, (n, 0), closing, "closing"))
        self._joints = tuple(found)


def _require_bounds(problems: Sequence[OptimalControl]) -> None:
    """Raise `SolveError` for bounds of an unknown parameter that no value satisfies."""
    known: dict[str, tuple[float, float]] = {}
    for problem in problems:
        for name, (low, high) in problem.parameter_bounds.items():
            lowest, highest = known.get(name, (low, high))
            known[name] = low, high = max(low, lowest), min(high, highest)
            if low > high:
                raise SolveError(f"the problems have bounds of the parameter {name} that contradict each other")
