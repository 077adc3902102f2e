"""``kg.FlexibleBody``: a body with modal coordinates in a floating frame."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import sympy
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, dynamicsymbols

from kanegen.arrays import Array
from kanegen.errors import FileError, ModelError, brief
from kanegen.flexible.given import table
from kanegen.flexible.inertia import Lumps, lumped
from kanegen.flexible.modal import ARRAYS, ModalData, refuse
from kanegen.model.records import Composite, FrozenMapping, ModalPoint, Parts
from kanegen.shapes import Link

COLOR: Final = "#0072b2"
"""Color of the lines that animations draw between the nodes of a body."""

_AXES: Final = ("x", "y", "z")


class Lump(Particle):  # type: ignore[misc]
    """A particle of a flexible body, its ``owner``."""

    def __init__(self, name: str, point: Any, mass: Any, owner: FlexibleBody) -> None:
        super().__init__(name, point, mass)
        self.owner = owner


class FlexibleBody(Composite):
    """A body that bends: small displacements, in a frame that moves freely, as sums of mode shapes.

    The position of node k from ``origin`` is ``nodes[k] + sum_m modes[m, k] eta_m``, in the axes of ``frame``. A model
    lists the body in ``bodies``; its modal coordinates ``eta``, their rates as speeds, and the elastic and damping
    forces ``-K eta - D eta'`` are then added (docs/flexible.md). Frame and origin move as the user says. The modes must
    not contain motions of the whole body that the frame makes, too: the kinetic-energy matrix would be singular.

    The inertia is exact for the given masses: that of :attr:`particles`, which have all its integrals of the modes.

    Parameters
    ----------
    name
        Part of the names of coordinates (``q_arm_1`` ...), speeds (``u_arm_1`` ...) and parameters.
    frame, origin
        The ReferenceFrame and the Point relative to which the body is described.
    nodes
        Positions (n, 3) in the undeformed body, m.
    modes
        Mode shapes (m, n, 3): displacements of the nodes, of any independent shapes.
    masses
        Masses of the nodes (n,), kg, which may be zero.
    mass_matrix
        In place of ``masses``: a mass matrix (n, n), kg, symmetric and without negative eigenvalues, of shape functions
        whose sum is one, the same for the three directions, as finite elements with displacements as unknowns have it.
    integrals
        In place of ``masses``: the integrals over the mass of all products of 1, x, y, z, and the components of the
        modes (mode 1 along x, y, z, mode 2 along x ...), (4 + 3 m, 4 + 3 m). The inertia invariants of the body are
        combinations of these.
    stiffness
        Modal stiffness: (m, m), or its diagonal (m,).
    damping
        Modal damping: (m, m), or its diagonal (m,); None for none.
    damping_ratio
        In place of ``damping``: the ratio of all modes of vibration in the fixed frame.
    rotations
        Rotations (m, n, 3) of the nodes, rad, for :meth:`node_frame` and ``inertias``; None for none.
    inertias
        Moments of inertia (n, 3, 3) of small rigid pieces at the nodes about these, kg m^2; None for none.
    second_order
        Displacements (m, m, n, 3) of second order in the modal coordinates, 1/m: those of node k are
        ``1/2 sum_mn second_order[m, n, k] eta_m eta_n``. The shortening of a beam that bends is an example; with it,
        axial forces stiffen the bending. None for none.
    third_order
        Displacements (m, m, m, n, 3) of third order, 1/m^2, with the factor 1/6. None for none.
    names
        Names of nodes: a mapping from a name to the index of a node.
    lines
        Pairs of nodes between which animations draw the deformed body; by default each node and the next one.
    parameters
        Whether particles, modes, stiffness and damping are parameters of the model, so that
        ``solver.with_parameters(other.parameters)`` is the same model with another body, without a build. False:
        numbers.

    Raises
    ------
    ModelError
        With every problem: wrong shapes, modes that are not independent or move no mass, matrices that are not
        symmetric or have negative eigenvalues, lines and names of nodes that do not exist.
    """

    def __init__(
        self,
        name: str,
        frame: Any,
        origin: Any,
        *,
        nodes: Any,
        modes: Any,
        masses: Any = None,
        mass_matrix: Any = None,
        integrals: Any = None,
        stiffness: Any,
        damping: Any = None,
        damping_ratio: float | None = None,
        rotations: Any = None,
        inertias: Any = None,
        second_order: Any = None,
        third_order: Any = None,
        names: Mapping[str, int] | None = None,
        lines: Iterable[tuple[int, int]] | None = None,
        parameters: bool = True,
    ) -> None:
        given, problems = locals(), _place_problems(name, frame, origin)
        self.data = data = ModalData.of(given, problems)
        self.name, self.frame, self.origin = name, frame, origin
        n, m = len(data.nodes), len(data.modes)
        self.names = FrozenMapping(names or {})
        self._lines = tuple((k, k + 1) for k in range(n - 1)) if lines is None else tuple(map(tuple, lines))
        refuse(name, self._node_problems())
        self._with_parameters, self._values = parameters, dict[Any, float]()
        self._key = _key(name)
        self.coordinates = tuple(dynamicsymbols(f"q_{self._key}_{k + 1}") for k in range(m))
        self.speeds = tuple(dynamicsymbols(f"u_{self._key}_{k + 1}") for k in range(m))
        self._points, self._frames = dict[int, Any](), dict[int, Any]()
        self.particles = tuple(self._lumps(lumped(data.integrals, data.fields.first_order + 1)))
        self._stiffness = self._matrix("k", data.stiffness)
        self._damping = self._matrix("d", data.damping)

    @classmethod
    def from_file(cls, path: str | Path, name: str, frame: Any, origin: Any, **options: Any) -> FlexibleBody:
        """The body of an npz file, such as the data of a Craig-Bampton reduction.

        The arrays of the file have the names of arguments: ``nodes``, ``modes``, ``stiffness``, ``masses`` or
        ``mass_matrix``, and as many others as are known, such as ``damping`` and ``rotations``; ``options`` are further
        arguments.

        Raises
        ------
        FileError
            If the file cannot be read.
        ModelError
            For arrays of other names, and as the constructor.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise FileError(f"{brief(str(path))} cannot be read as an npz file of arrays: {error}") from error
        problems = [f"array {key!r} of {path} is no argument of FlexibleBody" for key in arrays if key not in ARRAYS]
        missing = {"nodes", "modes", "stiffness"} - arrays.keys() - options.keys()
        problems += [f"{path} has no array {key!r}" for key in sorted(missing)]
        refuse(name, problems)
        return cls(name, frame, origin, **{**arrays, **options})

    # -- what the user attaches to --------------------------------------------------------------------------

    def point(self, node: int | str) -> Any:
        """The Point of a node, by index or name: joints, loads and contacts attach to it."""
        k = self._index(node)
        if k not in self._points:
            values = self.data.fields.values[:, k]
            self._points[k] = self._located(self.origin, f"{self.name}_{node}", self._node_key(node), values)
        return self._points[k]

    def node_frame(self, node: int | str) -> Any:
        """The ReferenceFrame that turns with a node: by its small rotations about x, y and z, one after the other."""
        k = self._index(node)
        if k not in self._frames:
            angles = [self._angle(node, k, c) for c in range(3)]
            self._frames[k] = _turned(self.frame, f"{self.name}_{node}", angles)
        return self._frames[k]

    def _angle(self, node: int | str, k: int, c: int) -> Any:
        """The rotation of node k about axis c, rad."""
        key = f"turn_{self._node_key(node)}_{_AXES[c]}"
        turns = self.data.rotations[:, k, c]
        modes = enumerate(zip(turns, self.coordinates, strict=True), start=1)
        return sympy.Add(*(self._number(f"{key}_{m}", float(turn)) * eta for m, (turn, eta) in modes))

    def _node_key(self, node: int | str) -> str:
        return f"{self._key}_at_{_key(str(node))}"

    def combination(self, coefficients: Any) -> Any:
        """``sum_m c_m eta_m`` as an expression, for outputs: (m,) for a number, (k, m) for a list.

        With the strains or stresses of each mode as coefficients, it is the strain or stress of the body.
        """
        problems: list[str] = []
        m = len(self.data.modes)
        shape: tuple[int | str, ...] = (m,) if np.ndim(coefficients) == 1 else ("k", m)
        rows = table(coefficients, shape, "coefficients", problems)
        refuse(self.name, problems)
        sums = [self._sum(row) for row in np.atleast_2d(rows)]
        return sums[0] if rows.ndim == 1 else sums

    @property
    def parameters(self) -> dict[Any, float]:
        """The values of all parameters by symbol: of the body, and of the points and frames of nodes asked for."""
        return dict(self._values)

    @property
    def frequencies(self) -> Array:
        """Angular frequencies (m,) of the vibrations while frame and origin are at rest, rad/s."""
        return self.data.vibrations[0]

    @property
    def elastic_energy(self) -> Any:
        """``1/2 eta^T K eta``, J, as an expression; models add it to their potential energy."""
        eta = sympy.Matrix(self.coordinates)
        return (eta.T * self._stiffness * eta)[0] / 2

    @property
    def dissipation(self) -> Any:
        """The power ``eta'^T D eta'`` that damping takes, W, as an expression."""
        rate = sympy.Matrix(self.speeds)
        return (rate.T * self._damping * rate)[0]

    def __repr__(self) -> str:
        m, n = len(self.data.modes), len(self.data.nodes)
        return f"<{type(self).__name__} {self.name!r}: {m} modes, {n} nodes, {len(self.particles)} particles>"

    # -- what a model takes ---------------------------------------------------------------------------------

    def parts(self, frame: Any) -> Parts:
        """What the body adds to a model with this inertial frame."""
        t = dynamicsymbols._t
        forces = -self._stiffness * sympy.Matrix(self.coordinates) - self._damping * sympy.Matrix(self.speeds)
        loads = []
        for k, (speed, force) in enumerate(zip(self.speeds, forces, strict=True)):
            point = ModalPoint(f"{self.name} mode {k + 1}")
            point.set_vel(frame, speed * frame.x)
            loads.append((point, force * frame.x))
        return Parts(
            coordinates=self.coordinates,
            speeds=self.speeds,
            kinematics=tuple(u - q.diff(t) for q, u in zip(self.coordinates, self.speeds, strict=True)),
            loads=tuple(loads),
            potential_energy=self.elastic_energy,
            parameters=FrozenMapping(self._values),
            shapes=FrozenMapping(self._drawn),
        )

    @cached_property
    def _drawn(self) -> dict[Any, Any]:
        """Lines between the nodes; their coefficients are numbers, because no equation needs these points."""
        used = sorted({k for pair in self._lines for k in pair})
        points = {k: self._numbered(k) for k in used}
        shapes = {points[a]: Link(points[a], points[b], color=COLOR) for a, b in self._lines if a != b}
        return {**dict.fromkeys(self.particles), **shapes}

    def _numbered(self, k: int) -> Any:
        return self.origin.locatenew(f"{self.name}_node_{k}", self._vector("", self.data.fields.values[:, k]))

    # -- construction ---------------------------------------------------------------------------------------

    def _node_problems(self) -> list[str]:
        n = len(self.data.nodes)
        given = [*((f"names[{key!r}]", k) for key, k in self.names.items())]
        given += [(f"lines[{i}]", k) for i, pair in enumerate(self._lines) for k in pair]
        wrong = [f"lines[{i}] is {pair}: expected two nodes" for i, pair in enumerate(self._lines) if len(pair) != 2]
        return wrong + [
            f"{where} is node {brief(k)}: expected 0 to {n - 1}" for where, k in given if not _is_index(k, n)
        ]

    def _index(self, node: int | str) -> int:
        n = len(self.data.nodes)
        if isinstance(node, str) and node in self.names:
            return self.names[node]
        if not _is_index(node, n):
            named = f", or one of {', '.join(self.names)}" if self.names else ""
            raise ModelError(f"flexible body {self.name} has no node {brief(node)}: expected 0 to {n - 1}{named}")
        return int(node)

    def _number(self, key: str, value: float) -> Any:
        """A parameter with this value, or the value; zeros, and values without a name, are numbers."""
        if value == 0.0 or not self._with_parameters or not key:
            return sympy.Float(value) if value else sympy.S.Zero
        symbol = sympy.Symbol(key)
        self._values[symbol] = value
        return symbol

    def _sum(self, row: Array) -> Any:
        return sympy.Add(*(sympy.Float(c) * eta for c, eta in zip(row, self.coordinates, strict=True) if c))

    def _vector(self, key: str, values: Array) -> Any:
        """The vector with a value for each field."""
        axes, parts = tuple(self.frame), [list[Any](), list[Any](), list[Any]()]
        for (c, monomial), value in zip(self.data.fields.terms, values, strict=True):
            name = "_".join([key, _AXES[c], *(str(m + 1) for m in monomial)]) if key else ""
            parts[c].append(self._number(name, float(value)) * sympy.Mul(*(self.coordinates[m] for m in monomial)))
        return sum((sympy.Add(*terms) * axis for terms, axis in zip(parts, axes, strict=True)), 0 * axes[0])

    def _located(self, base: Any, name: str, key: str, values: Array) -> Any:
        return base.locatenew(name, self._vector(key, values))

    def _lumps(self, lumps: Lumps) -> Iterable[Any]:
        """The particles, placed from the mass center."""
        mass = self._number(f"m_{self._key}", lumps.mass)
        center = self._located(self.origin, f"{self.name}_center", f"{self._key}_c", lumps.center)
        for k, values in enumerate(lumps.offsets.T):
            point = self._located(center, f"{self.name}_p{k + 1}", f"{self._key}_p{k + 1}", values)
            yield Lump(f"{self.name} {k + 1}", point, mass, self)

    def _matrix(self, key: str, values: Array) -> Any:
        """A symmetric matrix of parameters."""
        rows = [
            [self._number(f"{key}_{self._key}_{min(i, j) + 1}_{max(i, j) + 1}", float(x)) for j, x in enumerate(row)]
            for i, row in enumerate(values)
        ]
        return sympy.Matrix(rows)


def _place_problems(name: Any, frame: Any, origin: Any) -> list[str]:
    """Problems of name, frame and origin; without the latter two nothing else can be said."""
    problems = [] if isinstance(name, str) and name else [f"name is {brief(name)}: expected a string that is not empty"]
    if not isinstance(frame, ReferenceFrame):
        problems.append(f"frame is {brief(frame)}: expected a sympy.physics.mechanics ReferenceFrame")
    if not isinstance(origin, Point):
        problems.append(f"origin is {brief(origin)}: expected a sympy.physics.mechanics Point")
    return problems


def _key(name: str) -> str:
    """A name as part of that of a symbol."""
    return re.sub(r"\W", "_", name)


def _is_index(k: Any, n: int) -> bool:
    return isinstance(k, int | np.integer) and not isinstance(k, bool) and 0 <= int(k) < n


def _turned(parent: Any, name: str, angles: Sequence[Any]) -> Any:
    """A frame turned by small angles about x, y and z, or by one angle about one axis."""
    turning = [c for c, angle in enumerate(angles) if angle != 0]
    frame = ReferenceFrame(name)
    if len(turning) > 1:
        frame.orient_body_fixed(parent, angles, "XYZ")
    else:
        c = turning[0] if turning else 2
        frame.orient_axis(parent, tuple(parent)[c], angles[c])
    return frame
