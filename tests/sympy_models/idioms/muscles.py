"""Musculotendons of sympy.physics.biomechanics: activation and tendon states are inputs of the mechanical model."""

from __future__ import annotations

from sympy import symbols
from sympy.physics.biomechanics import (
    FirstOrderActivationDeGroote2016,
    MusculotendonDeGroote2016,
    MusculotendonFormulation,
    ZerothOrderActivation,
)
from sympy.physics.mechanics import (
    KanesMethod,
    LinearPathway,
    ObstacleSetPathway,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, d = symbols("m g l d", positive=True)


def forearm(muscle, obstacles=False):
    """A forearm about the elbow, with one muscle from the upper arm."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q, N.z])
    B.set_ang_vel(N, u * N.z)
    C = O.locatenew("C", l / 2 * B.x)
    C.v2pt_theory(O, N, B)
    origin, insertion = O.locatenew("origin", l * N.y), O.locatenew("insertion", d * B.x)
    points = [origin, O.locatenew("bone", l / 2 * N.y + d * N.x), insertion] if obstacles else [origin, insertion]
    actuator = muscle(ObstacleSetPathway(*points) if obstacles else LinearPathway(*points))
    arm = RigidBody("arm", C, B, m, (inertia(B, 0, 0, m * l**2 / 12), C))
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([arm], [(C, -m * g * N.y), *actuator.to_loads()])
    return km


@idiom()
def rigid_tendon():
    """A rigid tendon with zeroth-order activation: the excitation is the only input."""
    return forearm(
        lambda path: MusculotendonDeGroote2016.with_defaults("biceps", path, ZerothOrderActivation("biceps"))
    )


@idiom()
def first_order_activation():
    """First-order activation dynamics: the activation is a state of the muscle, an input of the model."""
    activation = FirstOrderActivationDeGroote2016.with_defaults("biceps")
    return forearm(lambda path: MusculotendonDeGroote2016.with_defaults("biceps", path, activation), obstacles=True)


@idiom()
def muscle_with_own_constants():
    """Every constant of the muscle is a symbol of its own."""
    names = "l_T_slack F_M_max l_M_opt v_M_max alpha_opt beta"
    slack, peak, length, velocity, angle, damping = symbols(names, positive=True)
    return forearm(
        lambda path: MusculotendonDeGroote2016(
            "biceps",
            path,
            ZerothOrderActivation("biceps"),
            tendon_slack_length=slack,
            peak_isometric_force=peak,
            optimal_fiber_length=length,
            maximal_fiber_velocity=velocity,
            optimal_pennation_angle=angle,
            fiber_damping_coefficient=damping,
        )
    )


@idiom()
def fiber_length_as_state():
    """An elastic tendon with the normalized fiber length as its state, an input of the model."""
    activation = FirstOrderActivationDeGroote2016.with_defaults("biceps")
    return forearm(
        lambda path: MusculotendonDeGroote2016.with_defaults(
            "biceps", path, activation, musculotendon_dynamics=MusculotendonFormulation.FIBER_LENGTH_EXPLICIT
        )
    )


@idiom()
def tendon_force_as_state():
    """An elastic tendon with the normalized tendon force as its state, an input of the model."""
    activation = FirstOrderActivationDeGroote2016.with_defaults("biceps")
    return forearm(
        lambda path: MusculotendonDeGroote2016.with_defaults(
            "biceps", path, activation, musculotendon_dynamics=MusculotendonFormulation.TENDON_FORCE_EXPLICIT
        )
    )
