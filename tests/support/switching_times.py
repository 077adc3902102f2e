"""The instants that kg_switches.h finds for the kernel of a model, and random functions of time that switch."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import ccompile
import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from compiled import DOUBLES
from numpy.typing import NDArray

import kanegen as kg
from kanegen.pipeline import sources_of

Array = NDArray[np.float64]
t = me.dynamicsymbols._t
x, v = me.dynamicsymbols("x v")
p = sm.symbols("p0:4")
MOST = 50_000

_HOST = """
#include <stdlib.h>
#include "kg_switches.h"
int instants(const double *values, double t, double t_end, int most, double *out);
int instants(const double *values, double t, double t_end, int most, double *out) {
  const kg_model *model = kg_get_model();
  double *p = malloc(((size_t)model->n_prepared + 1) * sizeof *p);
  double *work = malloc((kg_switches_work(model) + 1) * sizeof *work);
  kg_switches search;
  int count = 0, status;
  memcpy(p, values, (size_t)model->n_p * sizeof *p);
  model->prepare(p);
  status = kg_switches_open(&search, model, p, work);
  for (; count < most && status >= 0 && t != t_end; ++count) {
    status = kg_switches_next(&search, t, t_end < t ? -1.0 : 1.0, t_end, out + count);
    t = out[count];
  }
  free(p);
  free(work);
  return status < 0 ? status : count;
}
"""


class SwitchingTimes:
    """The kernel of a model with a loop that asks for one instant after the other."""

    def __init__(self, model: kg.Model, folder: Path) -> None:
        sources = sources_of(model, functions="rhs")
        headers = {name: text for name, text in sources.files.items() if name.endswith(".h")}
        target = folder / "switching.so"
        text = sources.text(sources.kernel) + _HOST
        ccompile.compile_source(ccompile.C_COMPILER, text, target, "-O1", "-shared", "-fPIC", headers=headers)
        self._library = ctypes.CDLL(str(target))
        self._values = np.array(list(model.parameters.values()), dtype=float)

    def __call__(self, start: float, end: float) -> Array:
        """All instants from ``start`` to ``end``, with ``end``."""
        out = np.empty(MOST)
        values, found = (array.ctypes.data_as(DOUBLES) for array in (self._values, out))
        count = self._library.instants(values, ctypes.c_double(start), ctypes.c_double(end), MOST, found)
        assert 0 <= count < MOST
        return out[:count]


def particle(force: Any, values: dict[Any, float]) -> kg.Model:
    """A particle on a line under a force."""
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, x * N.x)
    P.set_vel(N, v * N.x)
    return kg.Model(
        name="driven",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[v - x.diff(t)],
        bodies=[me.Particle("P", P, 1)],
        loads=[(P, force * N.x)],
        parameters={symbol: value for symbol, value in values.items() if sm.sympify(force).has(symbol)},
    )


class RandomFunctions:
    """Random functions of time with relations, extrema, rounding and splines inside of each other."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.values = {symbol: float(np.round(self.random.uniform(0.3, 4.0), 3)) for symbol in p}

    def number(self) -> Any:
        """A number or a parameter."""
        choice = self.random.integers(3)
        if choice == 0:
            return self.random.choice(np.array(p, dtype=object))
        return sm.Integer(int(self.random.integers(1, 6))) if choice == 1 else round(self.random.uniform(0.3, 4.0), 2)

    def line(self) -> Any:
        return [t, t - self.number(), self.number() * t, (self.number() - t) / self.number()][self.random.integers(4)]

    def argument(self, depth: int) -> Any:
        """A function of time, often affine."""
        made = [
            self.line,
            self.line,
            lambda: sm.Mod(self.line(), self.number()),
            lambda: sm.sin(self.number() * t + self.number()),
            lambda: t**2 / self.number(),
            lambda: sm.exp(-t / self.number()),
            lambda: self.function(depth - 1) if depth > 0 else self.line(),
            lambda: self.function(depth - 1) + self.line() if depth > 0 else self.line(),
        ]
        return made[self.random.integers(len(made))]()

    def condition(self, depth: int) -> Any:
        choice = self.random.integers(6)
        if choice < 4 or depth <= 0:
            return self.argument(depth) < (self.number() if choice % 2 else self.argument(depth))
        first, second = self.condition(depth - 1), self.condition(depth - 1)
        return sm.And(first, sm.Not(second)) if choice == 4 else sm.Or(first, second)

    def function(self, depth: int = 2) -> Any:
        """A function of time that may switch."""
        a = lambda: self.argument(depth)  # noqa: E731
        made = [
            lambda: sm.Piecewise((a(), self.condition(depth)), (a(), True)),
            lambda: sm.Piecewise((1, self.condition(depth)), (self.number(), self.condition(depth)), (0, True)),
            lambda: sm.Max(a(), a(), self.number()),
            lambda: sm.Min(a(), self.number()),
            lambda: sm.Abs(a()),
            lambda: sm.floor(a()),
            lambda: sm.Mod(a(), self.number()),
            lambda: sm.sign(a()),
            lambda: sm.Heaviside(a()),
        ]
        return made[self.random.integers(len(made))]()


def states_of(expression: Any, values: dict[Any, float], times: Array) -> dict[Any, Array]:
    """What each relation, extremum and rounding in an expression is at some times: a number; NaN where unknown."""
    found: dict[Any, Array] = {}

    def numbers(part: Any) -> Array:
        result = sm.lambdify(t, sm.sympify(part).subs(values), "numpy")(times)
        return np.broadcast_to(np.asarray(result, dtype=float), times.shape)

    for part in sm.preorder_traversal(sm.sympify(expression)):
        if isinstance(part, sm.core.relational.Relational):
            difference = numbers(part.lhs) - numbers(part.rhs)
            equal = np.abs(difference) < 1e-9  # as t and Mod(t, 3) are below 3: rounding decides
            found[part] = np.where(equal, np.nan, np.sign(difference))
        elif isinstance(part, sm.Max | sm.Min):
            choose = np.argmax if isinstance(part, sm.Max) else np.argmin
            found[part] = choose(np.array([numbers(argument) for argument in part.args]), axis=0)
        elif isinstance(part, sm.Abs | sm.sign | sm.Heaviside):
            found[part] = np.sign(numbers(part.args[0]))
        elif isinstance(part, sm.floor | sm.ceiling):
            found[part] = numbers(part)
        elif isinstance(part, sm.Mod):
            found[part] = np.floor(numbers(part.args[0]) / numbers(part.args[1]))
    return found
