"""Small robots as URDF texts."""

from __future__ import annotations

TWO_LINKS = """<?xml version="1.0"?>
<robot name="two links">
  <link name="ground"/>
  <link name="upper">
    <inertial><origin xyz="0 0 -0.25"/><mass value="2"/>
      <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.02"/></inertial>
  </link>
  <link name="lower">
    <inertial><origin xyz="0 0 -0.2"/><mass value="1.5"/>
      <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.015"/></inertial>
  </link>
  <joint name="shoulder" type="continuous">
    <parent link="ground"/><child link="upper"/><axis xyz="0 2 0"/><dynamics damping="0.3"/>
  </joint>
  <joint name="elbow" type="revolute">
    <origin xyz="0 0 -0.5"/><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
    <limit lower="0.2" upper="2.5" effort="40" velocity="3"/>
  </joint>
</robot>
"""

BODY = """<inertial><origin xyz="0.1 -0.2 0.05" rpy="0.3 0.2 -0.5"/><mass value="{mass}"/>
  <inertia ixx="0.05" ixy="0.004" ixz="-0.003" iyy="0.06" iyz="0.002" izz="0.04"/></inertial>"""


def link(name: str, mass: float = 0.0) -> str:
    """A link with all entries of its inertia and a turned center, or without mass."""
    return f'<link name="{name}">{BODY.format(mass=mass) if mass else ""}</link>'


def joint(name: str, kind: str, parent: str, child: str, more: str = "") -> str:
    """A joint at a general place."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.3 -0.1 0.2" rpy="0.4 -0.7 1.1"/>{more}</joint>'
    )


def robot(*parts: str, name: str = "robot") -> str:
    return f'<robot name="{name}">' + "\n".join(parts) + "</robot>"


def axis(*components: float) -> str:
    return f'<axis xyz="{" ".join(map(str, components))}"/>'


MIXED = robot(
    link("ground"),
    link("turret", 3.0),
    link("mast"),
    link("plate", 0.7),
    link("boom", 2.0),
    link("slide", 1.2),
    link("tip", 0.4),
    joint("pan", "continuous", "ground", "turret", axis(0, 0, -1) + '<dynamics damping="0.2"/>'),
    joint("weld", "fixed", "turret", "mast"),
    joint("plating", "fixed", "mast", "plate"),
    joint(
        "tilt", "revolute", "mast", "boom", axis(1, 2, -0.5) + '<limit lower="-2" upper="2" effort="9" velocity="1"/>'
    ),
    joint("reach", "prismatic", "boom", "slide", axis(0.3, 0, 1) + '<dynamics damping="1.5"/>'),
    joint("roll", "revolute", "slide", "tip"),
)
"""Rotations about all kinds of axes, a translation, and a fixed chain with mass at its end."""
