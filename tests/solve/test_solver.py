"""A solver: values by name, evaluation, what it refuses and how it says so, pickling."""

from __future__ import annotations

import inspect
import pickle
import pydoc
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy
from handmade_track import CONSTRAINTS, DESCRIPTION, PARAMETERS, acceleration, extension, solver, sources, start
from messages import raises, says

from kanegen.errors import BuildError, ModelError, SolveError
from kanegen.model import Baumgarte
from kanegen.program.catalogue import ATTRIBUTES, CATALOGUE
from kanegen.solve import Description, Solver

Q, U = start()


def test_the_description_survives_its_file_byte_by_byte() -> None:
    text = DESCRIPTION.to_json()
    assert Description.from_json(text) == DESCRIPTION
    assert Description.from_json(text).to_json() == text
    assert Description.from_sources(sources()) == DESCRIPTION


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{", ("JSON",)),
        ("[1]", ("list",)),
        ('{"name": "track"}', ("version", "kanegen")),
        (DESCRIPTION.to_json().replace('"form"', '"shape"'), ("version", "kanegen")),
    ],
)
def test_a_damaged_description_is_refused(text: str, names: tuple[str, ...]) -> None:
    with raises(BuildError, *names):
        Description.from_json(text)


def test_a_description_is_consistent() -> None:
    with raises(BuildError, "2", "speeds"):
        replace(DESCRIPTION, dependent=())


def test_struct_and_description_belong_together() -> None:
    with raises(BuildError, "coordinates", "('x', 'y')", "('x', 'z')"):
        solver(coordinates=("x", "z"))
    with raises(BuildError, "gains", "2", "9"):
        solver(constraints=replace(CONSTRAINTS, n_holonomic=2, n_nonholonomic=1))


def test_values() -> None:
    track = solver()
    qdot, udot = track.rhs(0.0, Q, U)
    np.testing.assert_array_equal(qdot, U)
    np.testing.assert_allclose(udot, acceleration(), rtol=1e-14)
    np.testing.assert_allclose(track.ode(0.0, np.concatenate([Q, U])), [*U, *acceleration()], rtol=1e-14)
    np.testing.assert_allclose(np.linalg.solve(track.T(0.0, Q, U), track.V(0.0, Q, U)), acceleration(), rtol=1e-14)
    np.testing.assert_allclose(track.J(0.0, Q, U) @ udot, track.b(0.0, Q, U), atol=1e-14)
    assert track.multipliers(0.0, Q, U) == pytest.approx(2.0 * 9.81 / 1.25)
    energies = track.kinetic_energy(0.0, Q, U), track.potential_energy(0.0, Q, U)
    assert track.energy(0.0, Q, U) == pytest.approx(sum(energies))
    out = (np.empty(2), np.empty(2))
    assert track.rhs(0.0, Q, U, [0.0, 0.0, 1.0], out=out) is out
    np.testing.assert_allclose(out[1], acceleration(lift=1.0), rtol=1e-14)


def test_residuals_are_split_by_level() -> None:
    off = Q + np.array([0.0, 0.1]), U + np.array([0.0, 0.2])
    position, velocity = solver().residuals(0.0, *off, [0.0, 0.0, 0.0])
    np.testing.assert_allclose(position, [0.1], rtol=1e-14)
    np.testing.assert_allclose(velocity, [0.2], rtol=1e-14)
    free = solver(without=("residuals",), constraints=replace(CONSTRAINTS, positions=(), velocities=()))
    assert [part.shape for part in free.residuals(0.0, Q, U)] == [(0,), (0,)]


def test_outputs_have_the_shapes_of_the_model() -> None:
    outputs = solver().outputs(0.0, Q, U)
    assert list(outputs) == ["speed", "state"]
    assert outputs["speed"] == pytest.approx(np.hypot(*U), rel=1e-14)
    assert type(outputs["speed"]) is float
    np.testing.assert_array_equal(outputs["state"], [Q, U])
    np.testing.assert_array_equal(solver().output("state", 0.0, Q, U), [Q, U])
    with raises(SolveError, "'sped'", "'speed'"):
        solver().output("sped", 0.0, Q, U)
    with raises(SolveError, "speed", "functions="):
        solver(without=("output:speed",)).output("speed", 0.0, Q, U)


def test_parameters_by_name_and_symbol() -> None:
    track = solver()
    steeper = track.with_parameters(slope=2.0)
    for other in (track.with_parameters({"slope": 2}), track.with_parameters({sympy.Symbol("slope"): 2})):
        assert dict(other.parameters) == {**PARAMETERS, "slope": 2.0} == dict(steeper.parameters)
        np.testing.assert_allclose(other.rhs(0.0, Q, U)[1], acceleration(2.0), rtol=1e-14)
    assert track.parameters["slope"] == 0.5
    assert steeper.extension is track.extension
    np.testing.assert_allclose(track.rhs(0.0, Q, U)[1], acceleration(), rtol=1e-14)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"slop": 1.0}, ("'slop'", "'slope'")),
        (
            {"xyz": 1.0, "mas": 2.0},
            ("'xyz'", "g", "mass", "slope", "'mas'", "'mass'"),
        ),
        ({"mass": float("nan")}, ("mass", "nan", "finite")),
        ({"mass": float("inf")}, ("mass", "inf")),
        ({"mass": "2"}, ("mass", "'2'")),
        ({"mass": 1j}, ("mass", "1j")),
        ({"mass": None}, ("mass", "None")),
        ({"mass": [1.0, 2.0]}, ("mass", "[1.0, 2.0]")),
        ({"mass": 1.0, sympy.Symbol("mass"): 2.0}, ("'mass'", "twice")),
    ],
)
def test_wrong_parameters_are_refused(values: dict[str, object], names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        solver().with_parameters(values)


def test_values_that_are_given_twice_are_refused() -> None:
    with raises(SolveError, "'mass'", "twice"):
        solver().with_parameters({"mass": 1.0}, mass=2.0)
    name = solver().description.coordinates[0]
    with raises(SolveError, repr(name), "twice"):
        solver().with_initial({name: 1.0}, **{name: 2.0})


def test_missing_parameters_are_named_when_something_is_evaluated() -> None:
    track = solver({"g": 9.81, "mass": None})
    assert "no value of mass, slope" in repr(track)
    names = ("mass", "slope")
    for call in (track.rhs, track.T, track.energy, track.residuals):
        with raises(SolveError, *names):
            call(0.0, Q, U)
    for attempt in (
        lambda: track.ode(0.0, [0.0] * 4),
        lambda: track.integrate((0.0, 1.0), Q, U),
        lambda: track.outputs(0.0, Q, U),
        lambda: track.partition(0.0, Q, U),
        track.low_level_callable,
    ):
        with raises(SolveError, *names):
            attempt()
    complete = track.with_parameters(mass=2.0, slope=0.5)
    np.testing.assert_allclose(complete.rhs(0.0, Q, U)[1], acceleration(), rtol=1e-14)


def test_what_was_not_built_is_refused_by_name() -> None:
    with raises(SolveError, "Q", "functions=", "rhs", "output"):
        solver().Q(0.0, Q, U)
    with raises(SolveError, "residuals", "functions="):
        solver(without=("residuals",)).integrate((0.0, 1.0), Q, U)


@pytest.mark.parametrize("name", ["energy", "potential_energy"])
def test_a_function_that_the_model_does_not_have_is_refused_with_the_reason(name: str) -> None:
    with raises(SolveError, name, "'track'", "it has no potential energy"):
        getattr(solver(unavailable={name: "it has no potential energy"}), name)(0.0, Q, U)


def test_quantities_are_attributes() -> None:
    track = solver()
    assert set(ATTRIBUTES) <= set(dir(track))
    assert all(f"    {name} (" in (Solver.__doc__ or "") for name in ATTRIBUTES)
    assert track.Q is track.Q
    with raises(AttributeError, "did you mean 'kinetic_energy'"):
        getattr(track, "kinetic_enrgy")  # noqa: B009


def test_stabilization_enters_the_right_hand_side() -> None:
    off = Q + np.array([0.0, 0.1])
    plain, stable = solver(), solver(stabilization=Baumgarte(alpha=3.0, beta=2.0))
    bias = -4.0 * 0.1
    np.testing.assert_allclose(plain.rhs(0.0, off, U)[1], acceleration(), rtol=1e-14)
    np.testing.assert_allclose(stable.rhs(0.0, off, U)[1], acceleration(lift=bias), rtol=1e-12)
    np.testing.assert_allclose(stable.b(0.0, off, U), [bias], rtol=1e-12)
    np.testing.assert_allclose(
        stable.with_stabilization(None).rhs(0.0, off, U)[1], plain.rhs(0.0, off, U)[1], rtol=1e-14
    )
    assert stable.with_parameters(slope=1.0).stabilization is stable.stabilization
    assert (plain.operation_count, stable.operation_count) == (9, 17)


def test_stabilization_that_cannot_be_honored_is_refused() -> None:
    with raises(SolveError, "stabilize"):
        solver(stabilization=Baumgarte(1.0, 1.0), constraints=replace(CONSTRAINTS, n_holonomic=0))
    with raises(ModelError, "G1", "shape"):
        solver(stabilization=Baumgarte(G1=-np.eye(2), G2=-np.eye(2)))
    with raises(SolveError, "rhs_stabilized", "functions="):
        solver(stabilization=Baumgarte(1.0, 1.0), without=("rhs_stabilized",)).rhs(0.0, Q, U)


def test_partition_tells_what_the_compiled_code_used() -> None:
    assert solver().partition(0.0, Q, U) == (("u2",), ("u1",))
    steep = solver({**PARAMETERS, "slope": 2000.0})
    assert steep.partition(0.0, Q, U) == (("u1",), ("u2",))
    with raises(SolveError, "J", "functions="):
        solver({**PARAMETERS, "slope": 2000.0}, without=("J",)).partition(0.0, Q, U)


def test_where_nothing_moves_freely_the_matrices_are_empty() -> None:
    fixed = solver(dependent=(0, 1), independent=())
    assert fixed.A(0.0, Q, U).shape == (2, 0)
    assert fixed.A2(0.0, Q, U).shape == (0, 2)


def test_a_solver_is_immutable() -> None:
    track = solver()
    with raises(AttributeError, "with_parameters"):
        track.parameters = {}
    with raises(AttributeError, "deleted"):
        del track.rhs
    with pytest.raises(TypeError):
        track.parameters["g"] = 1.0


def test_repr_is_one_short_line() -> None:
    text = repr(solver())
    assert text == "<Solver 'track' (reduced): 2 coordinates, 2 speeds, 1 constraints, 3 inputs, 3 parameters>"


def test_a_pickled_solver_works_in_another_process(tmp_path: Path) -> None:
    track = solver(stabilization=Baumgarte(3.0, 2.0)).with_parameters(slope=0.25)
    file = tmp_path / "solver.pickle"
    file.write_bytes(pickle.dumps(track))
    program = (
        "import pickle, sys; solver = pickle.load(open(sys.argv[1], 'rb'));"
        "print(repr([float(x) for x in solver.rhs(0.0, [0.3, 0.2], [0.2, 0.1])[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True)
    expected = track.rhs(0.0, [0.3, 0.2], [0.2, 0.1])[1]
    assert done.stdout.strip() == repr(expected.tolist())
    copy = pickle.loads(pickle.dumps(track))
    assert copy.sources.digest == track.sources.digest
    assert dict(copy.parameters) == dict(track.parameters)


def test_the_attributes_are_the_compiled_methods() -> None:
    track = Solver(extension(), DESCRIPTION, PARAMETERS)
    assert type(track.rhs).__name__ == "builtin_function_or_method"
    assert type(track.T).__name__ == "builtin_function_or_method"


@pytest.mark.parametrize("name", ["rhs", "T", "kinetic_energy"])
def test_quantities_have_signatures_and_descriptions(name: str) -> None:
    names = ["t", "q", "u", "r", "s", "out", "forces", "free"]
    for owner, arguments in ((solver(), names), (Solver, ["self", *names])):
        quantity = getattr(owner, name)
        signature = inspect.signature(quantity)
        assert list(signature.parameters) == arguments
        assert all(signature.parameters[optional].default is None for optional in names[3:])
        assert inspect.getdoc(quantity)
    start = (0.0, Q, U, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(getattr(Solver, name)(solver(), *start), getattr(solver(), name)(*start))


def test_the_help_of_a_solver_describes_every_quantity() -> None:
    text = pydoc.render_doc(Solver, renderer=pydoc.plaintext)
    for name in ATTRIBUTES:
        says(text, f"{name}(self, t, q, u, r=None, s=None, out=None, forces=None, free=None)")
        assert CATALOGUE[name].summary[1:] in text


def test_threads_share_a_solver() -> None:
    track = solver()
    errors: list[float] = []

    def work(k: int) -> None:
        for _ in range(200):
            udot = track.rhs(0.0, Q, U, [0.0, 0.0, float(k)])[1]
            errors.append(float(np.abs(udot - acceleration(lift=float(k))).max()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 800
    assert max(errors) < 1e-13
