"""Joints: every kind of joint in a System, with points and interframes as users give them."""

from __future__ import annotations

from sympy import symbols
from sympy.physics.mechanics import (
    CylindricalJoint,
    Particle,
    PinJoint,
    PlanarJoint,
    PrismaticJoint,
    ReferenceFrame,
    RigidBody,
    SphericalJoint,
    System,
    WeldJoint,
    dynamicsymbols,
)

from idioms.table import idiom

m, g, l, h = symbols("m g l h", positive=True)


def jointed(make):
    """A ground body G and a body B with the joint that ``make(G, B)`` returns, under gravity."""
    ground, body = RigidBody("G"), RigidBody("B")
    system = System.from_newtonian(ground)
    system.add_joints(make(ground, body))
    system.apply_uniform_gravity(-g * (ground.y + ground.z / 2))
    return system


@idiom(run={"q_pin": 0.4})
def pin_joint():
    """PinJoint with its own coordinate and speed and a point on the child."""
    return jointed(lambda G, B: PinJoint("pin", G, B, child_point=l * B.y, joint_axis=G.z))


@idiom()
def pin_joint_with_parent_point():
    """parent_point=h*G.x: the joint is not at the origin."""
    return jointed(lambda G, B: PinJoint("pin", G, B, parent_point=h * G.x, child_point=-l * B.x, joint_axis=G.z))


@idiom()
def pin_joint_with_interframes():
    """Interframes that are frames turned by constant angles, and one given as a vector."""

    def make(G, B):
        turned = ReferenceFrame("turned")
        turned.orient_axis(G.frame, G.x, symbols("alpha"))
        return PinJoint("pin", G, B, parent_interframe=turned, child_interframe=B.x + B.y, child_point=l * B.z)

    return jointed(make)


@idiom()
def prismatic_joint():
    """PrismaticJoint along a slanted axis."""
    return jointed(lambda G, B: PrismaticJoint("slide", G, B, joint_axis=G.x + G.y, parent_point=h * G.z))


@idiom()
def cylindrical_joint():
    """CylindricalJoint."""
    return jointed(lambda G, B: CylindricalJoint("rod", G, B, child_point=l * B.x, joint_axis=G.z))


@idiom()
def planar_joint():
    """PlanarJoint with points on both bodies."""
    return jointed(lambda G, B: PlanarJoint("plane", G, B, parent_point=h * G.x, child_point=l * B.y))


@idiom()
def spherical_joint():
    """SphericalJoint with space-fixed angles."""
    return jointed(lambda G, B: SphericalJoint("ball", G, B, child_point=l * B.z, rot_type="space", rot_order="zxy"))


@idiom()
def spherical_joint_by_default():
    """SphericalJoint as it is: body-fixed angles about x, y, z."""
    return jointed(lambda G, B: SphericalJoint("ball", G, B, child_point=l * B.z))


@idiom()
def weld_joint():
    """A body is welded to one that turns, at an angle."""
    ground, arm, tool = RigidBody("G"), RigidBody("A"), RigidBody("T")
    system = System.from_newtonian(ground)
    turned = ReferenceFrame("turned")
    turned.orient_axis(arm.frame, arm.y, symbols("alpha"))
    system.add_joints(
        PinJoint("pin", ground, arm, child_point=l * arm.x, joint_axis=ground.z),
        WeldJoint("weld", arm, tool, parent_point=h * arm.x, child_point=-h * tool.x, parent_interframe=turned),
    )
    system.apply_uniform_gravity(-g * ground.y)
    return system


@idiom()
def chain_of_joints():
    """A slider, a pin and a ball in a row, the last on a particle with a frame of its own."""
    ground, cart, rod, bob = RigidBody("G"), RigidBody("C", mass=m), RigidBody("R"), Particle("P", mass=m)
    system = System.from_newtonian(ground)
    bob_frame = ReferenceFrame("bob_frame")
    system.add_joints(
        PrismaticJoint("slider", ground, cart, joint_axis=ground.x),
        PinJoint("hinge", cart, rod, child_point=l * rod.y, joint_axis=cart.z),
        PinJoint("end", rod, bob, parent_point=-l * rod.y, child_interframe=bob_frame, child_point=h * bob_frame.y),
    )
    system.apply_uniform_gravity(-g * ground.y)
    return system


@idiom()
def joint_with_named_coordinates():
    """A joint with the user's own coordinate and speed."""
    q, u = dynamicsymbols("theta omega")
    return jointed(lambda G, B: PinJoint("pin", G, B, coordinates=q, speeds=u, child_point=l * B.x, joint_axis=G.z))
