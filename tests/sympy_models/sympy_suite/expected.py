"""What a run over SymPy's tests must find: how many models each test forms, and which are refused for which reason."""

from __future__ import annotations

import sympy

VERSION = "1.14"
"""The SymPy whose tests were counted."""

CAPTURED: dict[str, int] = {
    "test_actuator.py::TestForcedMassSpringDamperModel::test_force_acuator": 1,
    "test_actuator.py::TestForcedMassSpringDamperModel::test_linear_spring_linear_damper": 1,
    "test_jointsmethod.py::test_chaos_pendulum": 1,
    "test_jointsmethod.py::test_complete_simple_double_pendulum": 1,
    "test_jointsmethod.py::test_four_bar_linkage_with_manual_constraints": 1,
    "test_jointsmethod.py::test_jointsmethod": 1,
    "test_jointsmethod.py::test_rigid_body_particle_compatibility": 1,
    "test_jointsmethod.py::test_simple_pedulum": 1,
    "test_jointsmethod.py::test_two_dof_joints": 1,
    "test_kane.py::test_aux": 2,
    "test_kane.py::test_implicit_kinematics": 1,
    "test_kane.py::test_input_format": 7,
    "test_kane.py::test_issue_24887": 1,
    "test_kane.py::test_one_dof": 1,
    "test_kane.py::test_parallel_axis": 1,
    "test_kane.py::test_pend": 1,
    "test_kane.py::test_rolling_disc": 1,
    "test_kane.py::test_two_dof": 1,
    "test_kane2.py::test_aux_dep": 1,
    "test_kane2.py::test_non_central_inertia": 2,
    "test_kane2.py::test_sub_qdot": 1,
    "test_kane2.py::test_sub_qdot2": 2,
    "test_kane3.py::test_bicycle": 1,
    "test_kane4.py::test_replace_qdots_in_force": 6,
    "test_kane5.py::test_kane_rolling_disc_lu": 1,
    "test_lagrange.py::test_disc_on_an_incline_plane": 1,
    "test_lagrange.py::test_dub_pen": 1,
    "test_lagrange.py::test_nonminimal_pendulum": 1,
    "test_lagrange.py::test_rolling_disc": 1,
    "test_lagrange.py::test_simp_pen": 1,
    "test_lagrange2.py::test_lagrange_2forces": 1,
    "test_linearize.py::test_linearize_pendulum_kane_minimal": 1,
    "test_linearize.py::test_linearize_pendulum_kane_nonminimal": 1,
    "test_linearize.py::test_linearize_pendulum_lagrange_minimal": 1,
    "test_linearize.py::test_linearize_pendulum_lagrange_nonminimal": 1,
    "test_linearize.py::test_linearize_rolling_disc_kane": 1,
    "test_linearize.py::test_linearize_rolling_disc_lagrange": 1,
    "test_models.py::test_multi_mass_spring_damper_higher_order": 1,
    "test_models.py::test_multi_mass_spring_damper_inputs": 4,
    "test_models.py::test_n_link_pendulum_on_cart_higher_order": 1,
    "test_models.py::test_n_link_pendulum_on_cart_inputs": 4,
    "test_system_class.py::TestSystem::test_form_eoms_calls_subclass": 2,
    "test_system_class.py::TestSystem::test_system_kane_form_eoms_kwargs": 2,
    "test_system_class.py::TestSystem::test_system_lagrange_form_eoms_kwargs": 1,
    "test_system_class.py::TestSystemExamples::test_box_on_ground": 1,
    "test_system_class.py::TestSystemExamples::test_cart_pendulum_kanes": 2,
    "test_system_class.py::TestSystemExamples::test_cart_pendulum_lagrange": 2,
}
"""Test, without its parameters: successful calls of ``kanes_equations`` and ``form_lagranges_equations``."""

ENOUGH = 50
"""Fewest models of a SymPy whose tests have been renamed or removed: below, the comparison proves too little."""

REFUSALS: dict[str, str] = {
    # The acceleration set by a2pt_theory between a contact point and a point of the rolling disc is not the derivative
    # of the velocity that is set: the two are never fixed in one body.
    "test_kane.py::test_aux": "the acceleration set for its mass center Dmc in N is not the rate of its velocity",
    # Generalized active forces only: kanes_equations([], loads) of a system without bodies, whose M is zero.
    "test_kane2.py::test_sub_qdot2": "has no bodies",
    # A particle on a massless rod that has three angles: nothing resists a spin about the rod, M is singular.
    "test_kane.py::test_issue_24887": "speed u2 of model 'kane' moves no mass",
}
"""Test: words of the physical reason for which its models are refused. Every model of such a test must be refused."""


def is_counted() -> bool:
    """Whether the table belongs to the SymPy that is installed; the tests of another one may form other models."""
    return sympy.__version__.startswith(VERSION)


def missing(captured: dict[str, int], ran: set[str], complete: bool) -> list[str]:
    """What was captured less often than expected.

    A test of the table that ran must form at least as many models as it did. With the SymPy that was counted every
    test of the table must run; a newer SymPy may have renamed some, as long as enough models are left. ``complete``
    is false when the user selected tests.
    """
    problems = [
        f"{test} formed {captured.get(test, 0)} models, expected {count}"
        for test, count in CAPTURED.items()
        if test in ran and captured.get(test, 0) < count
    ]
    gone = [test for test in CAPTURED if test not in ran]
    if complete and gone and is_counted():
        problems.append(f"these tests did not run: {', '.join(gone)}")
    if complete and sum(captured.values()) < ENOUGH:
        problems.append(f"only {sum(captured.values())} models were captured, expected at least {ENOUGH}")
    return problems
