"""Contact rows, responses and the functions of contacts against an independent 80-digit derivation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import mpmath
import numpy as np
import pytest
from contact_models import Sledge, ball
from numpy.typing import NDArray
from oracle import Oracle
from tolerances import EVALUATION, SOLVE

import kanegen as kg
from kanegen.graph import mpmath_context
from kanegen.model.inputs import FORCES
from kanegen.program.assemble import assemble
from kanegen.program.functions import right_sides
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions
from kanegen.program.records import Program

Array = NDArray[np.float64]
STATE = {"t": [0.7], "q": [0.45, 0.8, -0.3, 0.6], "u": [0.9, -0.4, 0.7, 1.1], "r": [0.35]}
N_ROWS = 12
N_CONTACTS = 9
LAMBDA = [0.3 * k - 1.7 for k in range(N_ROWS)]


@dataclass(frozen=True)
class Free:
    """What the oracle says without contacts, and the rows it derives from constraints: ``W u' + rest``."""

    Q: Array
    P: Array
    J: Array
    b: Array
    W: Array
    rest: Array
    value: Array

    def solve(self, force: Array, b: Array) -> Array:
        """x with ``Q x = force + J^T lambda``, ``J x = b``."""
        n, m = len(self.Q), len(self.J)
        K = np.block([[self.Q, -self.J.T], [self.J, np.zeros((m, m))]])
        return np.linalg.solve(K, [*force, *b])[:n]


@cache
def program_of(form: str = "reduced", gains: bool = False) -> Program:
    return assemble(kg.derive(Sledge().model()), BuildOptions.of(form))[0]


@cache
def free(gains: tuple[float, float] = (0.0, 0.0)) -> Free:
    """Every row is that of a companion in which it is a constraint."""
    sledge = Sledge()
    matrices = tuple(np.array([[g]]) for g in gains)
    t, q, u = STATE["t"][0], STATE["q"], STATE["u"]
    base = Oracle(sledge.companion())(t, q, u, gains=(*matrices, np.zeros((0, 0))))
    W, rest, value = [], [], []
    for k, (name, _) in enumerate(sledge.rows):
        model = sledge.companion(k)
        found = Oracle(model)(t, q, u, r=STATE["r"] if model.inputs else ())
        velocity = name in sledge.velocity_rows
        W.append(found.J[-1])
        rest.append(-found.b[-1])
        value.append((found.velocity_residuals if velocity else found.position_residuals)[-1])
    return Free(base.Q, base.P, base.J, base.b, np.array(W), np.array(rest), np.array(value))


def arguments(**changes: Any) -> dict[str, Any]:
    p = list(Sledge().model().parameters.values())
    return {**STATE, FORCES: [0.0] * N_ROWS, "p": p, "g": [0.0, 0.0], **changes}


def value(program: Program, name: str, **changes: Any) -> Array:
    status, found = interpret(program, name, arguments(**changes))
    assert status >= 0
    return np.array(found, dtype=float)


def sections(program: Program, name: str = "contacts", **changes: Any) -> dict[str, Array]:
    """The sections of ``contacts`` or ``gaps``."""
    lengths = {"qdot": 4, "a": 4, "response": 4 * N_ROWS, "D": N_ROWS**2, "free": N_ROWS} if name != "gaps" else {}
    lengths |= dict.fromkeys(("value", "rate", "target"), N_ROWS)
    lengths |= dict.fromkeys(("load", "mu_s", "mu_k", "restitution", "creep"), N_CONTACTS)
    found = value(program, name, **changes)
    ends = list(accumulate(lengths.values()))
    assert len(found) == ends[-1]
    return {key: found[end - lengths[key] : end] for key, end in zip(lengths, ends, strict=True)}


def close(found: Array, expected: Array, tolerance: float) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max()))


FUNCTIONS = (
    ("reduced", "contacts"),
    ("reduced", "contacts_general"),
    ("articulated", "contacts"),
    ("pseudoinverse", "contacts"),
)


@pytest.mark.parametrize(("form", "name"), FUNCTIONS)
def test_rows_and_responses_agree_with_multiplier_solves(form: str, name: str) -> None:
    """D by unit multipliers as applied forces; gains of Baumgarte are in the free accelerations."""
    gains = (-3.0, -5.0)
    reference, found = free(gains), sections(program_of(form), name, g=list(gains))
    a = reference.solve(reference.P, reference.b)
    responses = np.array([reference.solve(W, 0 * reference.b) for W in reference.W])
    close(found["a"], a, SOLVE)
    close(found["response"], responses.ravel(), SOLVE)
    close(found["D"], (reference.W @ responses.T).ravel(), SOLVE)
    close(found["free"], reference.W @ a + reference.rest, SOLVE)
    assert np.array_equal(found["D"].reshape(N_ROWS, N_ROWS), found["D"].reshape(N_ROWS, N_ROWS).T)


def test_singular_partitions_hand_over() -> None:
    """Where the named dependent speed cannot be solved for: theta = pi/2 and phi = 0 make its column zero."""
    sledge = Sledge()
    program = assemble(kg.derive(sledge.model(dependent_speeds=sledge.u[:1])), BuildOptions.of("reduced"))[0]
    q = [0.45, 0.8, np.pi / 2, 0.0]
    general = sections(program, "contacts_general", q=q)
    for key, found in sections(program, q=q).items():
        assert np.array_equal(found, general[key])
    near = sections(program, q=[0.45, 0.8, np.pi / 2 - 0.1, 0.0])
    close(near["a"], sections(program, "contacts_general", q=[0.45, 0.8, np.pi / 2 - 0.1, 0.0])["a"], SOLVE)


def test_redundant_constraints_give_the_same() -> None:
    """The generalized inverse takes the bilateral constraint twice."""
    sledge = Sledge()
    (phi,) = sledge.description["holonomic_constraints"]
    model = sledge.model(holonomic_constraints=[phi, 3 * phi])
    program = assemble(kg.derive(model), BuildOptions.of("pseudoinverse"))[0]
    for key, expected in sections(program_of()).items():
        close(sections(program, g=[0.0] * 8)[key], expected, SOLVE)


def test_columns_by_kernel_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(right_sides, "WRITTEN_OUT", 0)
    program = assemble(kg.derive(Sledge().model()), BuildOptions.of("reduced"))[0]
    assert "X" in program.function("contacts").arrays
    for key, expected in sections(program_of()).items():
        close(sections(program)[key], expected, SOLVE)


def test_multipliers_act_in_every_function() -> None:
    """rhs, P, constraint forces and outputs with lambda are those of the applied force W^T lambda."""
    reference, forces = free(), {FORCES: LAMBDA}
    force = reference.P + reference.W.T @ LAMBDA
    a = reference.solve(force, reference.b)
    for form in ("reduced", "nonminimal", "range_space", "articulated", "pseudoinverse", "canonical"):
        program = program_of(form)
        close(value(program, "rhs", **forces)[4:], a, SOLVE)
        close(value(program, "P", **forces), force, EVALUATION)
        close(value(program, "constraint_force", **forces), reference.Q @ a - force, SOLVE)
        close(value(program, "output:lift", **forces), a[1:2], SOLVE)
    assert list(value(program_of(), "output:floor force", **forces)) == LAMBDA[:3]
    assert list(value(program_of(), "events", **forces)) == [LAMBDA[2] - 5, STATE["q"][1] - 1]


def test_values_and_rates_of_the_gaps() -> None:
    """Values by the oracle; rates and row accelerations by differences along the motion, in 50 digits."""
    sledge, reference, found = Sledge(), free(), sections(program_of(), "gaps")
    slips = np.array([name.endswith("slip") for name, _ in sledge.rows])
    level = np.array([name in sledge.velocity_rows for name, _ in sledge.rows])
    close(found["value"][~slips], reference.value[~slips], EVALUATION)
    close(found["rate"][level], reference.value[level], EVALUATION)
    assert not found["value"][slips].any()
    motion = sections(program_of())
    rates = moved_along(motion["qdot"], motion["a"])
    close(found["rate"][~level], rates["value"][~level], SOLVE)
    close(motion["free"], rates["rate"], SOLVE)
    close(motion["value"], found["value"], EVALUATION)


def moved_along(qdot: Array, udot: Array) -> dict[str, Array]:
    """Central differences of value and rate along q', u' and the given rate of the input."""
    program, h = program_of(), mpmath.mpf(10) ** -12
    context = mpmath_context(50)
    with mpmath.workdps(50):
        ends = []
        for s in (h, -h):
            t = mpmath.mpf(STATE["t"][0])
            q = [x + s * mpmath.mpf(v) for x, v in zip(STATE["q"], qdot, strict=True)]
            u = [x + s * mpmath.mpf(v) for x, v in zip(STATE["u"], udot, strict=True)]
            height = mpmath.mpf(STATE["r"][0]) + s * mpmath.cos(t) / 5
            moved = arguments(t=[t + s], q=q, u=u, r=[height])
            status, out = interpret(program, "gaps", moved, context)
            assert status >= 0
            ends.append(out)
        slopes = [float((x - y) / (2 * h)) for x, y in zip(*ends, strict=True)]
    return {"value": np.array(slopes[:N_ROWS]), "rate": np.array(slopes[N_ROWS : 2 * N_ROWS])}


def test_targets_loads_and_coefficients() -> None:
    found = sections(program_of(), "gaps")
    gap, rate = found["value"], found["rate"]
    x, v = -gap[5], -rate[5]
    target = [
        -14 * rate[0] - 49 * gap[0],  # rigid: drift 7
        -10 * rate[1],
        -10 * rate[2],
        -300 * rate[3] - 100 * gap[3],
        0.0,  # compliant: a load instead
        np.sign(x) * abs(x) ** 1.5 * (50 + 0.6 * v),  # x'' + lam x^n x' + k x^n = 0
        -9 * gap[6],
        -20 * rate[7] - 100 * gap[7],
        -2 * rate[8],  # creep
        -10 * rate[9],
        -20 * rate[10] - 100 * gap[10],
        -4 * gap[11],
    ]
    close(found["target"], np.array(target), EVALUATION)
    y = STATE["q"][1]
    load = [0, 0, -50 * gap[4] - 3 * rate[4], 0, 0, 0, 2 + y**2, 0, 0]
    close(found["load"], np.array(load, dtype=float), EVALUATION)
    assert list(found["mu_s"]) == [0.7, 0, 0, 0, 0, 0.4, 0.5, 0, 0]
    assert list(found["mu_k"]) == [0.35, 0, 0, 0, 0, 0.4, 0.5, 0, 0]
    assert list(found["restitution"]) == [0.8, *[0] * 8]
    assert list(found["creep"]) == [0, 0, 0, 0, 0, 1e-3, 0, 0, 0]


def test_impulses_are_generalized_impulses() -> None:
    """Against the change of P by the same load."""
    sledge = Sledge()
    load = sledge.contacts["impulses"]["blow"]
    parameters = {**sledge.description["parameters"], "T": 0.3}
    struck = kg.Model(
        **{**sledge.description, "inputs": (), "loads": [*sledge.description["loads"], *load], "parameters": parameters}
    )
    blow = (
        Oracle(struck)(STATE["t"][0], STATE["q"], STATE["u"]).F
        - Oracle(sledge.companion())(STATE["t"][0], STATE["q"], STATE["u"]).F
    )
    close(value(program_of(), "impulses"), blow, EVALUATION)


def test_compiled_functions_agree_with_50_digits() -> None:
    """The C of contacts, gaps, events and impulses, multipliers given and left out."""
    model = Sledge().model()
    module = kg.build(model, form="reduced", functions=("rhs",)).extension.module
    gains, t = [-3.0, -5.0], STATE["t"][0]
    prepared = module.Prepared(np.array([x or 0.0 for x in model.parameters.values()]), np.array(gains))
    with mpmath.workdps(50):
        for name in ("rhs", "rhs_stabilized", "contacts", "gaps", "events", "impulses"):
            function = module.Function(name, prepared)
            for forces in ([], LAMBDA):
                r = np.array([*STATE["r"], *forces])
                found = function.value(t, np.array(STATE["q"]), np.array(STATE["u"]), r)
                given = arguments(g=gains, **({FORCES: forces} if forces else {}))
                exact = {key: [mpmath.mpf(x) for x in array] for key, array in given.items()}
                _, expected = interpret(program_of(), name, exact, mpmath_context(50))
                found = np.concatenate([np.ravel(part) for part in found]) if isinstance(found, tuple) else found
                close(np.ravel(found), np.array([float(x) for x in expected]), EVALUATION)


def test_self_checks_of_a_model_with_contacts() -> None:
    assert kg.verify(ball(parameters={"e": 0.8, "mu": 0.3, "m": 1.5, "g": 9.81}), states=3, forms=()).checks


def test_equations_are_shown_with_the_multipliers_of_contacts() -> None:
    P = kg.derive(ball()).P.to_sympy()
    assert P.has(kg.Multiplier("floor"))
    assert not [symbol for symbol in P.free_symbols if str(symbol).startswith("r[")]


def test_tables() -> None:
    program = program_of()
    rows = {c.name: (c.law, c.level, c.normal, c.tangent, c.directions, c.closed) for c in program.contacts}
    assert rows == {
        "floor": ("restitution", 2, 0, 1, 2, False),
        "stop": ("stabilized", 2, 3, -1, 0, False),
        "spring": ("compliant", 2, 4, -1, 0, False),
        "pad": ("stabilized", 2, 5, -1, 0, False),
        "ratchet": ("stabilized", 1, 6, -1, 0, False),
        "guide": ("bilateral", 2, 7, 8, 1, True),
        "brake": ("load", 2, -1, 9, 1, True),
        "hook": ("latch", 2, 10, -1, 0, False),
        "clutch": ("latch", 1, 11, -1, 0, True),
    }
    overload, knock = program.events
    assert (overload.impose, overload.remove, overload.impulse, overload.multipliers) == ((7,), (8,), -1, True)
    assert (knock.impose, knock.direction, knock.terminal, knock.impulse, knock.multipliers) == ((), -1, True, 0, False)
    assert program.symbols.multipliers[1:3] == ("floor slip 1", "floor slip 2")
