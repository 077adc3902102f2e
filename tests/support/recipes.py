"""What the recipes of docs/architecture.md add to a copy of the package: texts, each in a file that the page names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Recipe:
    """The addition of the section with this ``title``.

    ``new``: texts of new files. ``inserted``: texts by (file, the place before which they come), which occurs once.
    """

    title: str
    inserted: Mapping[tuple[str, str], str]
    new: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        """The files that change."""
        return {*self.new, *(file for file, _ in self.inserted)}

    def carry_out(self, root: Path) -> None:
        """Make the additions in a copy of the package."""
        for name, text in self.new.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        for (name, place), text in self.inserted.items():
            old = (root / name).read_text(encoding="utf-8")
            assert old.count(place) == 1, (self.title, name, place)
            (root / name).write_text(old.replace(place, text + place), encoding="utf-8")


LAW = Recipe(
    "A contact law",
    {
        ("kanegen/model/laws.py", "def odd_power("): '''\
@dataclass(frozen=True)
class Cubic(CompliantLaw):
    """A spring that becomes stiffer: ``stiffness x^3``, never tensile."""

    stiffness: Any = field(metadata=NOT_NEGATIVE)
    quantity: str = "force"

    def response(self, x: Any, rate: Any) -> Any:
        return self.stiffness * x**3


''',
        ("kanegen/model/laws.py", "ImpactFunction)\n"): "Cubic, ",
        ("kanegen/model/__init__.py", "from kanegen.model.laws import HuntCrossley"): (
            "from kanegen.model.laws import Cubic as Cubic\n"
        ),
        ("kanegen/__init__.py", "    from kanegen.model import Event as"): (
            "    from kanegen.model import Cubic as Cubic\n"
        ),
        ("kanegen/__init__.py", '        "Event",\n'): '        "Cubic",\n',
    },
)

QUANTITY = Recipe(
    "A quantity",
    {
        ("kanegen/derivation/equations.py", "    qdot = _vector("): (
            '    active_power = _scalar(lambda e: e.graph.dot(e.P.nodes, e.system.u), "``P u``, W.")\n'
        ),
        ("kanegen/program/catalogue.py", '    _quantity("momentum", '): (
            '    _quantity("active_power", "", "power of P", unit="W"),\n'
        ),
    },
)

FORM = Recipe(
    "A form of the equations",
    {
        ("kanegen/derivation/forms.py", "def complete("): '''\
def bordered(
    graph: Graph, M: Matrix, P: Sequence[Node], rows: Matrix, b: Sequence[Node]
) -> tuple[list[list[Node]], list[Node]]:
    """``[M -J^T; J 0]`` and ``[P; b]``, whose solution are u' and the multipliers."""
    upper = [[*row, *(-J[i] for J in rows)] for i, row in enumerate(M)]
    return [*upper, *([*row, *(graph.zero for _ in rows)] for row in rows)], [*P, *b]


''',
        ("kanegen/forms.py", '    FormSpec("momentum", '): (
            '    FormSpec("bordered", "[M -J^T; J 0] for u\' and the multipliers"),\n'
        ),
        (
            "kanegen/program/functions/right_sides.py",
            "    Accelerations,\n    Matrix,",
        ): "    bordered as bordered_system,\n",
        ("kanegen/program/functions/right_sides.py", "def articulated("): '''\
def bordered(f: Functions, s: Fragment, stabilized: bool) -> Sequence[Node]:
    """Solve for u' and the multipliers together, by LU with row pivoting."""
    e = f.equations
    b = (e.b_stabilized if stabilized else e.b).nodes
    K, right = bordered_system(f.graph, e.left_side, e.right_side, [row.J for row in e.constraints.rows], b)
    return s.call("lu_solve", len(K), title="[M -J^T; J 0]", a=flat(K), b=right)["b"][: f.n_u]


''',
        ("kanegen/program/functions/right_sides.py", '    "augmented": augmented,'): '    "bordered": bordered,\n',
    },
)

KERNEL = Recipe(
    "A runtime kernel",
    {
        ("kanegen/program/kernels/__init__.py", "*linear.KERNELS"): "*norms.KERNELS, ",
        ("kanegen/program/kernels/__init__.py", "linear, singular\n"): "norms, ",
        ("templates/jax/kernels.py", "def kg_min("): '''\
def kg_largest_size(n, x):
    """The largest magnitude of n numbers."""
    return True, jnp.max(jnp.abs(x)).reshape(1)


''',
    },
    {
        "templates/runtime/kg_norms.h": """\
/* kg_norms.h - sizes of vectors. */
#ifndef KG_NORMS_H
#define KG_NORMS_H

#include "kg_vectors.h"

/* The largest magnitude of n numbers. */
static inline int kg_largest_size(int n, const kg_real *x, kg_real *size) {
  size[0] = kg_largest(n, x);
  return KG_OK;
}

#endif
""",
        "kanegen/program/kernels/norms.py": '''\
"""Sizes of vectors (kg_norms.h)."""

from __future__ import annotations

from typing import Final

from kanegen.codes import Status
from kanegen.program.kernels.dense import Array
from kanegen.program.records import Kernel


def largest_size(n: int, x: Array, size: Array) -> int:
    """The largest magnitude of n numbers."""
    size[0] = max(map(abs, x))
    return Status.OK


KERNELS: Final = (
    Kernel(largest_size, "kg_norms.h", ("n",), {"x": ("n",), "size": (1,)}, ("size",), lambda n: 2 * n),
)
''',
    },
)

CALL_OF_KERNEL = Recipe(
    "A quantity",
    {
        ("kanegen/program/catalogue.py", '    _quantity("new_speeds", '): (
            '    _quantity("largest_force", "", "largest entry of P"),\n'
        ),
        ("kanegen/program/functions/quantities.py", "def rank("): """\
def largest_force(f: Functions) -> Fragment:
    s = f.fragment()
    return s.output(s.call("largest_size", f.n_u, x=f.function("P"))["size"], ())


""",
        ("kanegen/program/recipes.py", '    "rank": _made('): '    "largest_force": _made(quantities.largest_force),\n',
    },
)
"""A quantity that needs more than straight-line code: what calls the new kernel."""

BACK_END = Recipe(
    "A back end",
    {
        ("kanegen/backends/registry.py", '"interpreted": "'): '"noted": "kanegen.backends.noted", ',
    },
    {
        "kanegen/backends/noted.py": '''\
"""The interpreted back end, with the names of the models that were built."""

from __future__ import annotations

from typing import Any

from kanegen.backends import interpreted
from kanegen.backends.protocol import Request

NAMES: list[str] = []


def build_model(request: Request, options: Any = None) -> interpreted.InterpretedModel:
    """Derive a model, note its name and wrap its program."""
    NAMES.append(request.generated.program.name)
    return interpreted.build_model(request, options)
''',
    },
)

TARGET = Recipe(
    "A target of `kanegen emit`",
    {
        ("kanegen/emission/targets.py", "from kanegen.emission.project import"): (
            "from kanegen.emission.plain import emit_plain\n"
        ),
        ("kanegen/emission/targets.py", '        "jax": Target('): (
            '        "plain": Target("functions of floats in Python", emit_plain),\n'
        ),
    },
    {
        "kanegen/emission/plain/__init__.py": '''\
"""A printer of programs: straight-line functions in Python, on floats."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from kanegen.codegen.kernel import lowered_in_range
from kanegen.codegen.printer import Printer
from kanegen.derivation import derive
from kanegen.writing import write_folder
from kanegen.model import Model
from kanegen.pipeline import generate, options_of
from kanegen.program.passes.code import Code, Gather, Let, Part
from kanegen.program.records import Check, Store


class PlainPrinter(Printer):
    """Prints values as expressions of Python."""

    def _number(self, value: int | Fraction | float) -> str:
        return repr(float(value))

    def _function(self, op: str) -> str:
        return f"math.{op}"


def emit_plain(model: Model, directory: str | Path, form: str = "auto", *, name: str | None = None) -> Path:
    """Write the right-hand side of a model without parameters as a module of Python into ``directory``."""
    program = lowered_in_range(generate(derive(model), options_of(form, "rhs", None)).program)
    function = program.function("rhs")
    lines = ["import math", "", "def rhs(t, q, u):", f"    out = [0.0] * {function.shape[0]}"]
    lines += [f"    {line}" for line in _lines(function.code, PlainPrinter({}, {}))]
    stem = name or program.name
    return write_folder({f"{stem}.py": "\\n".join([*lines, "    return out", ""])}, Path(directory), f"{stem}.py")


def _lines(code: Code, printer: Printer) -> list[str]:
    lines = []
    for outer in code.statements:
        for statement in outer.statements if isinstance(outer, Part) else (outer,):
            if isinstance(statement, Let):
                lines.append(f"z{statement.number} = {printer.definition(statement.value)}")
                printer.names[statement.value] = f"z{statement.number}"
            elif isinstance(statement, Gather):
                angles = "".join(f"{printer.expression(angle)}, " for angle in statement.angles)
                calls = {"sine": "math.sin", "cosine": "math.cos"}
                lines += [f"{array} = list(map({call}, ({angles})))" for array, call in calls.items()]
            elif isinstance(statement, Check):
                lines.append(f"assert {printer.holds(statement.condition)}")
            else:
                assert isinstance(statement, Store), statement
                lines.append(f"{statement.array}[{statement.index}] = {printer.expression(statement.value)}")
    return lines
''',
    },
)

CHECK = Recipe(
    "A check of `kg.verify`",
    {
        ("kanegen/verification/principles.py", "def gibbs_appell("): '''\
def symmetry(subject: Subject, worst: Worst) -> str:
    """The kinetic-energy matrix against its transpose."""
    for state in subject.states:
        Q = np.reshape(subject.read(state, subject.equations.Q.nodes)[0], (subject.n_u, subject.n_u))
        worst.compare("Q", state, Q.ravel(), Q.T.ravel())
    return "Q = Q^T"


''',
        ("kanegen/verification/checks.py", '    ("power balance", '): '    ("symmetry", principles.symmetry, None),\n',
    },
)

PLOT = Recipe(
    "A plot",
    {("kanegen/plot/__init__.py", "from kanegen.plot.strobe"): "from kanegen.plot.steps import steps as steps\n"},
    {
        "kanegen/plot/steps.py": '''\
"""The sizes of the steps of a motion."""

from __future__ import annotations

from typing import Any

import numpy as np

from kanegen.solve.solution import Solution


def steps(solution: Solution, *, ax: Any = None) -> Any:
    """Draw the steps over time."""
    from kanegen.solve.solution.drawing import make_axes

    axis = make_axes(ax, 1, "plot.steps", height=3.0)[0]
    axis.plot(solution.t[1:], np.diff(solution.t))
    return axis
''',
    },
)

SECTION = Recipe(
    "A section of a report",
    {
        ("kanegen/reporting/sections.py", "checks, equations, motion\n"): "bodies, ",
        ("kanegen/reporting/sections.py", '    "Motion in 3-D": '): '    "Bodies": bodies.bodies,\n',
    },
    {
        "kanegen/reporting/bodies.py": '''\
"""The section about bodies."""

from __future__ import annotations

from collections.abc import Iterator

from kanegen.display import escape
from kanegen.reporting.reported import Reported


def bodies(reported: Reported) -> Iterator[str] | None:
    """The names of the bodies; None for a Lagrangian without bodies."""
    names = [str(body.name) for body in reported.model.bodies]
    return iter([f"<p>{escape(', '.join(names))}</p>"]) if names else None
''',
    },
)

SHAPE = Recipe(
    "A shape of an animation",
    {
        ("kanegen/shapes.py", "@dataclass(frozen=True, eq=False)\nclass Plane("): '''\
@dataclass(frozen=True, eq=False)
class Rod(Shape):
    """A square rod."""

    width: Any
    length: Any


''',
        ("kanegen/view/solids.py", "        case shapes.Plane():"): """\
        case shapes.Rod():
            return unit("cuboid"), (lengths[0], lengths[0], lengths[1])
""",
    },
)

OPTION = Recipe(
    "An option of a run",
    {
        ("kanegen/run_options.py", "\n\nclass ControlOptions("): (
            '    patience: Annotated[int | None, Option(None, Kind.COUNT, "Most rejected steps; None: no limit.")]\n'
        ),
        ("templates/runtime/kg_steppers.h", "  if (s->short_steps >= KG_SHORT_STEPS) {\n"): """\
  if (s->options.patience > 0 && s->statistics.rejected >= s->options.patience) {
    return KG_TOO_MANY_STEPS;
  }
""",
    },
)

CONSTRAINTS = Recipe(
    "A kind of constraints",
    {
        ("kanegen/model/description.py", "    implied_constraints: tuple"): (
            "    pinned_constraints: tuple[Any, ...] = field(metadata=_constraints(POSITION))\n"
        ),
        ("kanegen/model/model.py", "        implied_constraints: Any = (),\n"): (
            "        pinned_constraints: Any = (),\n"
        ),
    },
)

RECIPES = (
    *(LAW, QUANTITY, FORM, KERNEL, CALL_OF_KERNEL, BACK_END, TARGET, CHECK, PLOT, SECTION, SHAPE, OPTION, CONSTRAINTS),
)
