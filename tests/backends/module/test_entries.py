"""Every entry of the compiled module refuses every wrong argument: an emitted module has no Python layer before it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises

import kanegen as kg
from kanegen.errors import SolveError

t = me.dynamicsymbols._t
WRONG = ("abc", object(), [[1.0, 2.0], [3.0]], 10**5000, "\ud800", np.zeros((2, 0, 5)))
Q, U, R, S = [0.1, 0.0, 0.1], [0.2, 0.0, 0.2], [0.3], [0.5]


@cache
def solver() -> kg.Solver:
    """A particle above a rough table in the plane z = x, driven by an input and a state."""
    x, y, z, vx, vy, vz, F, a = me.dynamicsymbols("x y z vx vy vz F a")
    m, tau = sm.symbols("m tau")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y + z * N.z)
    P.set_vel(N, vx * N.x + vy * N.y + vz * N.z)
    model = kg.Model(
        name="entries",
        frame=N,
        coordinates=[x, y, z],
        speeds=[vx, vy, vz],
        kinematics={x.diff(t): vx, y.diff(t): vy, z.diff(t): vz},
        bodies=[me.Particle("P", P, m)],
        loads=[(P, (F + a) * N.x - 9.81 * m * N.y)],
        holonomic_constraints=[z - x],
        inputs=[kg.Input(F, default=0.0)],
        states={a: -a / tau},
        contacts=[kg.Unilateral(y, name="table", friction=kg.Coulomb(0.3), slip=[vx])],
        events=[kg.Event("far", x - 5)],
        impulses={"kick": [(P, N.x)]},
        outputs={"height": y},
        parameters={m: 2.0, tau: 0.1},
    )
    return kg.build(model, form="nonminimal", functions="all")


def module() -> Any:
    return solver().extension.module


def prepared() -> Any:
    return module().Prepared([2.0, 0.1][: len(module().PARAMETERS)])


def function(name: str = "rhs") -> Any:
    return module().Function(name, prepared(), R)


def constant() -> Any:
    return module().Inputs.constant(R)


def integrate(**changes: Any) -> Any:
    given = {"function": function(), "inputs": constant(), "t0": 0.0, "t1": 0.1, "q0": Q, "u0": U, "s0": S}
    return module().integrate(**{**given, **changes})


ENTRIES: dict[str, tuple[tuple[str, Any], ...]] = {
    "make_consistent": (
        *(("prepared", prepared), ("t", 0.0), ("q", Q), ("u", U), ("r", R), ("fixed", (0,))),
        ("tolerance", 1e-12),
    ),
    "impulse": (
        *(("prepared", prepared), ("t", 0.0), ("q", Q), ("u", U), ("r", R), ("generalized", [1.0, 0.0, 0.0])),
        ("rows", (0,)),
    ),
    "contacts": (("prepared", prepared), ("t", 0.0), ("q", Q), ("u", U), ("r", R)),
    "contacts_after_impulse": (*(("prepared", prepared), ("t", 0.0), ("q", Q), ("u_before", U), ("u", U), ("r", R)),),
    "checked_state": (("t", 0.0), ("q", Q), ("u", U), ("r", R)),
    "interpolate": (*(("t_old", [0.0]), ("h", [0.1]), ("coefficients", np.zeros((1, 4, 7))), ("times", [0.05])),),
    "along": (
        *(("function", lambda: function("output:height")), ("inputs", constant), ("control", None), ("times", [0.0])),
        *(("states", [[*Q, *U, *S]]), ("others", ())),
    ),
    "integrate": (
        *(("function", function), ("inputs", constant), ("t0", 0.0), ("t1", 0.1), ("q0", Q), ("u0", U), ("s0", S)),
    ),
    "Control": (
        *(("law", None), ("slots", (0,)), ("low", [-1.0]), ("high", [1.0]), ("sample_time", 0.0), ("start", [0.0])),
        *(("free", None), ("delay", 0.0), ("before", None), ("first", None)),
    ),
    "Prepared": (("parameters", [2.0, 0.1]), ("gains", None), ("allowed", ())),
    "Function": (("name", "rhs"), ("prepared", prepared), ("inputs", None)),
    "Inverse": (("slots", (0,)),),
    "Assembly": (
        *(("prepared", prepared), ("coordinates", (0,)), ("outputs", ("height",)), ("velocities", 1)),
        ("linear", True),
    ),
    "Run": (("function", function), ("inputs", constant)),
}


def value_of(value: Any) -> Any:
    return value() if callable(value) else value


def test_the_entries_accept_right_arguments() -> None:
    for name, arguments in ENTRIES.items():
        if name not in ("along", "Inverse"):
            getattr(module(), name)(*(value_of(value) for _, value in arguments))
    assert integrate().status == module().STATUS_FINISHED


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize(
    ("entry", "place"), [(entry, k) for entry, arguments in ENTRIES.items() for k in range(len(arguments))]
)
def test_wrong_types_are_refused(entry: str, place: int, wrong: Any) -> None:
    arguments = [value_of(value) for _, value in ENTRIES[entry]]
    arguments[place] = wrong
    with pytest.raises(SolveError):
        getattr(module(), entry)(*arguments)


@pytest.mark.parametrize("wrong", [None, *WRONG], ids=range(len(WRONG) + 1))
@pytest.mark.parametrize("place", range(5))
def test_wrong_types_of_a_path_are_refused(place: int, wrong: Any) -> None:
    path = [prepared(), constant(), [0.0], [Q], [U], [[0.0, 0.0, 0.0]]]
    assert module().Inverse((0,)).along(*path)["rank"].tolist() == [1]
    path[place] = wrong
    with pytest.raises(SolveError):
        module().Inverse((0,)).along(*path)


@pytest.mark.parametrize("wrong", [None, *WRONG], ids=range(len(WRONG) + 1))
@pytest.mark.parametrize(("method", "place"), [(name, k) for name in ("place", "follow") for k in range(4)])
def test_wrong_types_in_an_assembly_are_refused(method: str, place: int, wrong: Any) -> None:
    """Prescribed are x and the output "height", which is y; the constraint determines z."""
    assembly = module().Assembly(prepared(), (0,), ("height",), 1, True)
    targets = [[0.1, 0.2, 0.0], [0.0, 0.0, 0.0]]
    arguments = {"place": [constant(), 0.0, Q, targets], "follow": [constant(), [0.0], [targets], Q]}[method]
    assert getattr(assembly, method)(*arguments)[0] == 0
    arguments[place] = wrong
    with pytest.raises(SolveError):
        getattr(assembly, method)(*arguments)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"inputs": None}, ("inputs", "None", "Inputs.constant", 1)),
        ({"function": None}, ("function", "None", "Function(name, prepared)")),
        ({"inputs": kg}, ("inputs",)),
        ({"function": "rhs"}, ("function", "'rhs'")),
        ({"t1": 10**400}, ("t1",)),
        ({"projection": (1, 1e-13, ("kinetic_energy",), False)}, ("kinetic_energy", "()", "(k, 4)")),
        ({"projection": (1, 1e-13, ("position_level",))}, ("projection", "any_rank")),
        ({"projection": (0, 1e-13, (), False)}, ("every", 0)),
        ({"projection": (1, np.nan, (), False)}, ("tolerance", "nan")),
        ({"projection": (1, 1e-13, "energy", False)}, ("projection",)),
        ({"projection": (1, 1e-13, ("heat",), False)}, ("'heat'", "kinetic_energy")),
        ({"projection": 3}, ("projection", 3)),
        ({"events": (1,)}, ("events[0]", 1)),
        ({"events": (-1,)}, ("events[0]", -1)),
        ({"modes": {5: 0}}, ("modes", 5)),
        ({"modes": {0: 9}}, ("modes[0]", 9, 4)),
        ({"modes": "open"}, ("modes", "'open'")),
        ({"control": 1}, ("control", 1)),
        ({"s0": "abc"}, ("s0",)),
        ({"s0": []}, ("s0", "(0,)", "(1,)", "a")),
        ({"u0": [1.0]}, ("u0", "(1,)", "(3,)", "vx")),
    ],
)
def test_a_run_names_the_wrong_argument(changes: dict[str, Any], names: tuple[Any, ...]) -> None:
    with raises(SolveError, *names):
        integrate(**changes)


def test_inputs_without_values_are_refused() -> None:
    with raises(SolveError, "inputs", "Inputs.constant"):
        integrate(inputs=module().Inputs())


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("control_forces", (0,), [0.0], [1.0]), ("control_forces", 3, 1)),
        ((None, (7,), [0.0], [1.0]), ("slots[0]", 7)),
        ((None, (0,), [0.0, 0.0], [1.0]), ("low", "(2,)", "(1,)")),
        ((None, (0,), [2.0], [1.0]), ("low", "high", 2.0, 1.0)),
        ((None, (0,), [0.0], [1.0], -1.0), ("sample_time", -1.0)),
        ((None, (0,), [0.0], [1.0], 0.0, [np.nan]), ("start", "nan")),
        ((None, (0,), [0.0], [1.0], 0.1), ("sample_time", 0.1)),
        (("rank", (0,), [0.0], [1.0], 0.0, (), None, 0.1), ("delay", 0.1, "sample_time")),
        (("rank", (0,), [0.0], [1.0], 0.1, (), None, -0.1), ("delay", -0.1)),
    ],
)
def test_the_source_of_controls_is_checked(arguments: tuple[Any, ...], names: tuple[Any, ...]) -> None:
    with raises(SolveError, *names):
        module().Control(*arguments)


def test_controls_in_a_state_that_has_none_are_refused() -> None:
    control = module().Control(None, (0,), [-1.0], [1.0])
    with raises(SolveError, "state", 7, 1):
        module().along(function("output:height"), constant(), control, [0.0], [[*Q, *U, *S]])
    with raises(SolveError, "rhs", 7, 8):
        integrate(control=module().Control(None, (0,), [-1.0], [1.0], start=[0.0]))


def test_samples_shorter_than_the_rounding_of_t_are_refused() -> None:
    with raises(SolveError, "sample_time", 1e-20):
        integrate(control=module().Control("rank", (0,), [-1.0], [1.0], 1e-20))


def test_the_number_of_arguments_of_python_inputs_is_checked() -> None:
    for wrong in (*WRONG, None, 0, 2, 5):
        with pytest.raises(SolveError):
            module().Inputs.python(lambda t: R, wrong)


def test_a_path_has_no_state_for_inputs_that_depend_on_it() -> None:
    inputs = module().Inputs.python(lambda t, q, u: R, 3)
    with raises(SolveError, "state", "inverse dynamics"):
        module().Inverse((0,)).along(prepared(), inputs, [0.0], [Q], [U], [[0.0, 0.0, 0.0]])


def test_several_sources_of_inputs_act_one_after_the_other() -> None:
    """The second of two controls of the same input acts; one that is given twice is refused."""
    kinds = [module().Inputs.python(lambda t, q, u, s: [q[0] + s[0]], 4), module().Inputs.constant([7.0])]
    infinite = [-np.inf], [np.inf]
    first = module().Control(kinds[0], (0,), *infinite)
    second = module().Control(kinds[1], (0,), *infinite, sample_time=0.05, delay=0.02, before=[3.0])
    result = integrate(control=[first, second])
    assert [samples.shape for samples in result.samples] == [(0, 3), (4, 3)]
    rows = result.samples[1]
    np.testing.assert_allclose(rows[1:, 0], [0.0, 0.05, 0.1], atol=1e-15)
    np.testing.assert_allclose(rows[1:, 1], [0.02, 0.07, np.inf], atol=1e-15)
    along = module().inputs_along(function(), constant(), [0.01, 0.03], [[*Q, *U, *S]] * 2, [first, second])
    np.testing.assert_array_equal(along[:, 0], [3.0, 7.0])
    along = module().inputs_along(function(), constant(), [0.01], [[*Q, *U, *S]], first)
    np.testing.assert_array_equal(along[:, 0], [0.6])
    with raises(SolveError, "twice"):
        integrate(control=[first, first])


def test_indices_are_checked() -> None:
    state = (prepared(), 0.0, Q, U, R)
    with raises(SolveError, "fixed[1]", 6):
        module().make_consistent(*state, (0, 6), 1e-12)
    with raises(SolveError, "rows[0]", 1):
        module().impulse(*state, [1.0, 0.0, 0.0], (1,))
    with raises(SolveError, "impulses", "vx", "nan"):
        module().impulse(*state, [np.nan, 0.0, 0.0])
    with raises(SolveError, "slots", 2, 1):
        module().Inverse((0, 0))


def test_dense_output_of_wrong_shape_is_refused() -> None:
    with raises(SolveError, "t_old", "(2,)", "h", "(1,)"):
        module().interpolate([0.0, 1.0], [1.0], np.zeros((1, 4, 2)), [0.5])
    with raises(SolveError, "coefficients", "(1, 0, 2)"):
        module().interpolate([0.0], [1.0], np.zeros((1, 0, 2)), [0.5])
    single = np.arange(8.0, dtype=np.float32).reshape(1, 4, 2)
    np.testing.assert_array_equal(module().interpolate([0.0], [1.0], single, [0.0]), [[0.0, 1.0]])


def test_only_a_right_hand_side_is_a_pair() -> None:
    with raises(SolveError, "kinetic_energy", "()"):
        function("kinetic_energy").pair(0.0, Q, U, s=S)


@pytest.mark.parametrize("wrong", [*WRONG, ["a"], {"a": 1.0}], ids=range(len(WRONG) + 2))
@pytest.mark.parametrize("name", ["t", "q", "u", "r", "s"])
def test_wrong_arguments_of_functions_are_refused(name: str, wrong: Any) -> None:
    arguments = {"t": 0.0, "q": Q, "u": U, "r": R, "s": S, name: wrong}
    for call in (function().pair, function("output:height").value):
        with raises(SolveError, name):
            call(**arguments)
