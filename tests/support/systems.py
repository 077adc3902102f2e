"""The example systems for the tests: loaded by path, built once per session, with random states."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from checkout import EXAMPLES
from oracle import Oracle, Reference
from tolerances import CONDITION

import kanegen as kg
from kanegen.modelfile import read_model_file

# (example, options of its model); every bilateral system of the documents and the two for scale.
SYSTEMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("constrained_particle", {}),
    ("rheonomic_particle", {}),
    ("appell_hamel", {"constraints": "nonlinear"}),
    ("appell_hamel", {"constraints": "linear"}),
    ("elliptic_wire", {}),
    ("varying_pendulum", {}),
    ("spherical_pendulum", {}),
    ("slider_crank", {}),
    ("slipping_disk", {}),
    ("rolling_disk", {}),
    ("n_link_pendulum", {"n": 3}),
    ("spatial_chain", {"n": 2}),
)
# Systems that are too large for the oracle, which takes 80 digits.
LARGE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("humanoid", {}),
    ("scissor_lift", {}),
    ("robot_arm", {}),
    ("flexible_spinup", {}),
    ("elastic_slider_crank", {}),
    ("flexible_manipulator", {}),
    ("two_track_vehicle", {}),
)

# Systems with contacts, friction, events or impulses: they run, and their self-checks hold.
HYBRID: tuple[tuple[str, dict[str, Any]], ...] = (
    ("obstructed_pendulum", {}),
    ("impacting_pendulum", {}),
    ("stick_slip_blocks", {}),
    ("struck_four_bar", {}),
    ("bouncing_ball", {}),
    ("rattleback", {}),
)

# Systems with additional states s.
STATEFUL: tuple[tuple[str, dict[str, Any]], ...] = (("dc_motor_arm", {}), ("muscle_arm", {}))

# Systems with feedback laws of inputs.
FEEDBACK: tuple[tuple[str, dict[str, Any]], ...] = (("lqr_cart_pole", {}), ("sampled_pid", {}))


def names(systems: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """A name for each system, for the tests' reports."""
    return [" ".join([name, *map(str, options.values())]) for name, options in systems]


NAMES = names(SYSTEMS)


@dataclass(frozen=True)
class State:
    """A state of a system and what the oracle finds there."""

    t: float
    q: np.ndarray
    u: np.ndarray
    reference: Reference
    s: np.ndarray = field(default_factory=lambda: np.empty(0))


def example_names() -> list[str]:
    """The names of all examples."""
    return sorted(path.stem for path in EXAMPLES.glob("[!_]*.py"))


@cache
def example(name: str) -> ModuleType:
    """The module ``build_examples/NAME.py``, loaded by path; examples may import others."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def model_of(name: str, **options: Any) -> kg.Model:
    return example(name).model(**options)


@cache
def solver_for(name: str, form: str = "auto", **options: Any) -> kg.Solver:
    """The compiled solver of an example, with Baumgarte gains of zero; built once per session."""
    return kg.build(model_of(name, **options), form=form)


@cache
def oracle_for(name: str, **options: Any) -> Oracle:
    return Oracle(model_of(name, **options))


def initial(name: str, **options: Any) -> dict[str, Any]:
    """The start of an example for the given options."""
    module = example(name)
    if "n" in options:
        return module.initial(options["n"])
    if hasattr(module, "INITIAL"):
        return module.INITIAL
    file = read_model_file(EXAMPLES / f"{name}.py")
    start = {key: value for key, value in file.start().items() if key != "s" or len(value)}
    return {**start, "r": tuple(item.default or 0.0 for item in file.model.inputs) or None}


@cache
def states(name: str, count: int = 3, seed: int = 0, **options: Any) -> tuple[State, ...]:
    """The start of an example (on its manifold) and ``count`` random states around it (off it), t != 0.

    Inputs have the values of the start. The muscles of ``muscle_arm`` overflow so far from the start.
    """
    start = initial(name, **options)
    oracle = oracle_for(name, **options)
    t, q, u, s = start["t"], np.array(start["q"]), np.array(start["u"]), np.array(start.get("s", ()))
    r = start.get("r") or ()
    drawn = [State(t, q, u, oracle(t, q, u, r=r, s=s), s)]
    for t, q, u, s in _neighbors(start, np.random.default_rng(seed)):
        reference = oracle(t, q, u, r=r, s=s)
        if _well_conditioned(reference):
            drawn.append(State(t, q, u, reference, s))
        if len(drawn) > count:
            return tuple(drawn)
    raise AssertionError("unreachable: the neighbors never end")


def _neighbors(
    start: dict[str, Any], rng: np.random.Generator
) -> Iterator[tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
    given = np.array(start.get("s", ()))
    while True:
        q = np.array(start["q"]) + rng.uniform(-0.4, 0.4, len(start["q"]))
        u = np.array(start["u"]) + rng.uniform(-1.0, 1.0, len(start["u"]))
        yield rng.uniform(0.5, 2.0), q, u, given + rng.uniform(-0.4, 0.4, given.size)


def _well_conditioned(reference: Reference) -> bool:
    """Away from rank loss of the constraint rows, measured in the mass metric and whatever their units."""
    Q, J = reference.Q, reference.J
    if not len(J):
        return bool(np.linalg.cond(Q) < CONDITION)
    inverse = J @ np.linalg.solve(Q, J.T)
    scale = 1.0 / np.sqrt(np.diag(inverse))
    return bool(np.linalg.cond(scale[:, None] * inverse * scale) < CONDITION)


@cache
def built_in_form(name: str, form: str, **options: Any) -> kg.Solver:
    """The solver of an example in one form, with the functions by which forms are compared."""
    return kg.build(model_of(name, **options), form=form, functions=["rhs", "multipliers", "constraint_force", "Q"])
