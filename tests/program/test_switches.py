"""Which switches the program of a model has: those of what runs evaluate, wherever the user wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from compiled import CompiledModel

import kanegen as kg
from kanegen.codes import SwitchShape
from kanegen.derivation import Equations
from kanegen.derivation.speeds import lower_model
from kanegen.pipeline import generate, sources_of
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions
from kanegen.program.records import Program

t = me.dynamicsymbols._t
x, v, F, s = me.dynamicsymbols("x v F s")
m, T, t1 = sm.symbols("m T t1")
STEP = sm.Piecewise((0, t < 5), (1, True))
RAMP = sm.Max(0, t - 5)
VALUES = {m: 2.0, T: 0.5, t1: 2.0}


def particle(force: Any = 0, place: Any = x, **more: Any) -> kg.Model:
    """A particle on a line."""
    values = {symbol: value for symbol, value in VALUES.items() if symbol is m or sm.sympify(force).has(symbol)}
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, place * N.x)
    P.set_vel(N, (v + place.diff(t) - x.diff(t)) * N.x)
    return kg.Model(
        name="particle",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[v - x.diff(t)],
        bodies=[me.Particle("P", P, m)],
        loads=[(P, force * N.x)],
        parameters=values,
        **more,
    )


def program_of(model: kg.Model, form: str = "auto") -> Program:
    return generate(Equations(lower_model(model)), BuildOptions.of(form, None)).program


def levels(model: kg.Model, form: str = "auto") -> list[tuple[float, ...]]:
    return [switch.levels for switch in program_of(model, form).switches]


PLACES = {
    "load": lambda: particle(STEP - x),
    "state rate": lambda: particle(-s, states={s: STEP - s}),
    "law": lambda: particle(F, inputs=[kg.Input(F, law=STEP - x)]),
    "law with limits": lambda: particle(F, inputs=[kg.Input(F, law=RAMP - x, saturation=3)]),
    "guard": lambda: particle(-x, events=[kg.Event("up", x - RAMP)]),
    "moving frame": lambda: particle(-x, x + RAMP**2 / 2),
    "gap": lambda: particle(-x, contacts=[kg.Unilateral(x - RAMP, kg.Restitution(0.5), name="floor")]),
    "constraint": lambda: particle(-x, holonomic_constraints=[x - RAMP**2]),
    "spline": lambda: particle(kg.Spline([0, 4, 5, 6], [0, 0, 1, 1], kind="linear", name="f")(t)),
}


@pytest.mark.parametrize("place", [place for place in PLACES if place != "spline"])
def test_switches_are_found_wherever_runs_evaluate_them(place: str) -> None:
    assert (5.0,) in levels(PLACES[place]())


def test_breakpoints_of_splines_of_time() -> None:
    """The ends are breakpoints too, where a run ends; nothing happens there where the last piece continues."""
    (found,) = levels(PLACES["spline"]())
    assert found == pytest.approx((0.0, 4.0, 5.0, 6.0), abs=1e-8)
    f = kg.Spline([0, 4, 5, 6], [0, 0, 1, 1], kind="linear", name="f", extrapolate="polynomial")
    assert levels(particle(f(t))) == [(4.0, 5.0)]


@pytest.mark.parametrize("place", ["law", "load", "state rate"])
def test_breakpoints_of_splines_with_ends(place: str) -> None:
    """The conditions of the ends of a table stand beside the values of a law, continuous or sampled."""
    lift = kg.Spline([0, 4, 5, 6], [0, 0, 1, 1], kind="linear", name="f")(t)
    law = {"inputs": [kg.Input(F, law=lift)]}
    given = {"law": (F, law), "load": (lift, {}), "state rate": (-s, {"states": {s: lift - s}})}[place]
    (found,) = levels(particle(given[0], **given[1]))
    assert found == pytest.approx((0.0, 4.0, 5.0, 6.0), abs=1e-8)
    (ends,) = levels(particle(F, inputs=[kg.Input(F, law=lift, sample_time=0.1)]))
    assert ends == pytest.approx((0.0, 6.0), abs=1e-8)


@pytest.mark.parametrize("form", ["reduced", "nonminimal", "pseudoinverse", "canonical"])
def test_switches_are_those_of_the_model_in_every_form(form: str) -> None:
    assert levels(particle(STEP - x), form) == [(5.0,)]


def test_models_without_switches_have_no_function() -> None:
    program = program_of(particle(sm.sin(3 * t) - x))
    assert program.switches == ()
    assert "switches" not in [function.name for function in program.functions]
    sources = sources_of(particle(-x))
    assert "kg_switch_info" not in sources.text(sources.kernel)


def test_what_only_the_user_calls_and_what_a_clock_samples_does_not_count() -> None:
    assert levels(particle(-x, outputs={"y": STEP})) == []
    assert levels(particle(F, inputs=[kg.Input(F, law=STEP - x, sample_time=0.1)])) == []


@pytest.mark.parametrize("form", ["auto", "pseudoinverse", "canonical"])
def test_what_tells_values_from_rounding_errors_switches_nothing(form: str) -> None:
    """The absolute terms of a servo-constraint and of a moving constraint have kinks; the motion has none."""
    target = x - sm.sin(3 * t)
    assert levels(particle(F, inputs=[F], control=kg.Servo(target, theta=(-2, -1))), form) == []
    assert levels(particle(-x, holonomic_constraints=[target * sm.cos(t)]), form) == []


def test_the_compiled_table(tmp_path: Path) -> None:
    """Values and rates of a train of pulses that begins at a parameter, against the interpreted program."""
    model = particle(sm.Piecewise((1, sm.And(t > t1, sm.Mod(t, T) < T / 4)), (0, sm.sin(9 * t) > 0.5), (2, True)))
    program = program_of(model)
    shapes = SwitchShape.CURVED, SwitchShape.AFFINE, SwitchShape.AFFINE, SwitchShape.PIECES
    assert tuple(switch.shape for switch in program.switches) == shapes
    compiled = CompiledModel(sources_of(model), tmp_path)
    for time in np.linspace(-3.0, 7.0, 23):
        values = {"t": [time], "q": [np.nan], "u": [np.nan], "r": [], "p": [2.0, 0.5, 2.0], "g": []}
        status, found = compiled.evaluate("switches", values, 8)
        since = found[2::2] / found[3::2]
        assert status == 0
        assert np.allclose(np.abs(found[:2]), np.abs([np.sin(9 * time), 9.0]), rtol=1e-14)
        assert np.allclose(since, [time - 2.0, time, np.mod(time, 0.5) - 0.125], rtol=1e-14, atol=1e-14)
        assert np.allclose(interpret(program, "switches", values)[1], found, rtol=1e-14, atol=1e-14)
