"""Uses what tests/support/recipes.py adds to a copy of the package, and prints what comes out as JSON.

``python recipes_used.py`` runs in an empty folder, with the copy on the path.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

STATE = (0.0, [0.3, -0.4], [0.5, 0.7])
"""Time, coordinates and speeds at which functions are evaluated."""


def pendulum(**more: Any) -> kg.Model:
    """A double pendulum without parameters; ``more``: further arguments of `Model`."""
    q, u = me.dynamicsymbols("q1 q2"), me.dynamicsymbols("u1 u2")
    t, N, O = me.dynamicsymbols._t, me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    point, bodies = O, []
    for k in range(2):
        axes = me.ReferenceFrame(f"A{k}")
        axes.orient_axis(N, q[k], N.z)
        point, before = point.locatenew(f"P{k}", axes.x), point
        axes.set_ang_vel(N, u[k] * N.z)
        point.v2pt_theory(before, N, axes)
        bodies.append(me.Particle(f"body_{k}", point, 1 + k))
    rates = [x.diff(t) - v for x, v in zip(q, u, strict=True)]
    given: dict[str, Any] = {"bodies": bodies, "gravity": -9.81 * N.y, "name": "pendulum", **more}
    return kg.Model(frame=N, coordinates=q, speeds=u, kinematics=rates, **given)


def interpreted(**options: Any) -> kg.Solver:
    return kg.build(pendulum(), backend="interpreted", **options)


def law() -> Any:
    from kanegen.pipeline import generate, options_of
    from kanegen.program.interpret import interpret

    z, v, k = me.dynamicsymbols("z"), me.dynamicsymbols("v"), sm.Symbol("k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    ball = me.Particle("ball", O.locatenew("P", z * N.z), 1)
    floor = kg.Unilateral(z, law=kg.Cubic(k), name="floor")
    given = {"coordinates": [z], "speeds": [v], "kinematics": [z.diff(me.dynamicsymbols._t) - v]}
    model = kg.Model(name="ball", frame=N, bodies=[ball], contacts=[floor], parameters={k: 100.0}, **given)
    program = generate(kg.derive(model), options_of("auto", None, None)).program
    return interpret(program, "gaps", {"t": [0.0], "q": [-0.1], "u": [0.0], "r": [0.0], "p": [100.0], "g": []})


def quantity() -> Any:
    solver = interpreted()
    t, q, u = STATE
    return solver.active_power(t, q, u), (solver.P(t, q, u) @ u)


def form() -> Any:
    x = sm.cos(me.dynamicsymbols("q1")) + sm.cos(me.dynamicsymbols("q2"))
    model = pendulum(holonomic_constraints=[x - 1.5])
    return [
        kg.build(model, form=name, backend="interpreted").rhs(*STATE)[1].tolist() for name in ("bordered", "reduced")
    ]


def kernel() -> Any:
    kg.emit(pendulum(), "kernel", functions=["rhs", "P", "largest_force"], programs="selftest")
    kg.emit_jax(pendulum(), "jax", functions=["rhs", "P", "largest_force"])
    solver = interpreted()
    return solver.largest_force(*STATE), solver.P(*STATE).tolist()


def back_end() -> Any:
    from kanegen.backends import noted

    kg.build(pendulum(), backend="noted")
    return noted.NAMES


def target() -> Any:
    from kanegen.emission.targets import emit_for

    emit_for("plain", pendulum(), "plain")
    spec = importlib.util.spec_from_file_location("plain", Path("plain", "pendulum.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.rhs(*STATE), [x for part in interpreted().rhs(*STATE) for x in part.tolist()]


def check() -> Any:
    report = kg.verify(pendulum(), states=1, forms=[], backend="interpreted")
    return {row.principle: row.ok for row in report.checks}


def plot() -> Any:
    import matplotlib as mpl

    mpl.use("agg")
    solution = interpreted().integrate((0.0, 0.1), *STATE[1:])
    (line,) = kg.plot.steps(solution).lines
    return len(line.get_xdata()), len(solution.t) - 1


def section() -> Any:
    from kanegen.reporting import sections
    from kanegen.reporting.reported import Reported

    parts = sections.SECTIONS["Bodies"](Reported(pendulum(), None, "no motion", verify=False))
    return list(parts or ())


def shape() -> Any:
    from kanegen.view.solids import drawn

    solid = drawn(kg.shapes.Rod(0.1, 2.0), me.Point("P"), me.ReferenceFrame("A"), {})
    return solid.local.diagonal().tolist()


def option() -> Any:
    """Signatures and texts that name it; and the headers of the runtime, which the test compiles."""
    import inspect

    from click.testing import CliRunner

    from kanegen.cli import main as command
    from kanegen.codegen.sources import runtime_headers, wrapper_files
    from kanegen.emission.fmu.options import FmuOptions

    Path("option").mkdir()
    for name, text in runtime_headers().items():
        Path("option", name).write_text(text, encoding="utf-8")
    functions = kg.Solver.integrate, kg.Solver.integrate_many, kg.export_fmu
    texts = (
        *(str(inspect.signature(function)) for function in functions),
        *(str(function.__doc__) for function in functions),
        CliRunner().invoke(command, ["run", "--help"]).output,
        *FmuOptions.of("3.0", {}).numbers,
        wrapper_files()["module_integrate.pxi"],
    )
    return ["patience" in text for text in (*texts[:7], " ".join(texts[7:-1]), texts[-1])]


def constraints() -> Any:
    x = sm.cos(me.dynamicsymbols("q1")) + sm.cos(me.dynamicsymbols("q2")) - 1.5
    pinned, holonomic = pendulum(pinned_constraints=[x]), pendulum(holonomic_constraints=[x])
    try:
        pendulum(pinned_constraints=[sm.Symbol("c") - 1])
    except kg.ModelError as error:
        refused = str(error)
    return {
        "repr": repr(pinned),
        "rows": [row[0] for row in pinned.overview().rows if "constraint" in row[0]],
        "equations": [[str(getattr(kg.derive(m), name).to_sympy()) for name in "JbQP"] for m in (pinned, holonomic)],
        "table": kg.derive(pinned)._repr_html_(),
        "check": kg.verify(pinned, states=2, forms=[], backend="interpreted").ok,
        "refused": refused,
    }


USES: dict[str, Callable[[], Any]] = {
    use.__name__: use
    for use in (law, quantity, form, kernel, back_end, target, check, plot, section, shape, option, constraints)
}


def main() -> None:
    found = {}
    for name, use in USES.items():
        try:
            found[name] = {"value": use()}
        except Exception:  # the test of this recipe shows it
            found[name] = {"error": traceback.format_exc()}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
