"""Expressions in Python, on the scalars of JAX."""

from __future__ import annotations

import keyword
from fractions import Fraction
from math import isfinite
from typing import Final

from kanegen.codegen.printer import Printer
from kanegen.precision import Tolerance

FUNCTIONS: Final = {
    **{name: f"jnp.{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "cbrt")},
    **{name: f"jnp.{name}" for name in ("floor", "ceil", "abs")},
    **{f"a{name}": f"jnp.arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "pow": "jnp.power",
    "erf": "jax.scipy.special.erf",
    # The first of two equal values in C is not their mean, of which jnp.minimum has the derivative.
    **{name: f"kg_{name}" for name in ("min", "max", "reciprocal")},
}
"""The Python name of the function of each operation that is no operator."""


def python_name(name: str) -> str:
    """The name as a variable of Python."""
    return f"{name}_" if keyword.iskeyword(name) else name


class JaxPrinter(Printer):
    """Prints values as Python expressions."""

    negation, either = "~", "|"

    def _number(self, value: int | Fraction | float) -> str:
        if isinstance(value, Tolerance):
            return f"kg_tolerance({float(value)!r}, {value.single!r})"
        number = float(value)
        # Python's words for them are names, which need a module.
        return repr(number) if isfinite(number) else f"float({str(number)!r})"

    def _is_nonzero(self, text: str) -> str:
        return f"({text} < 0.0) | ({text} > 0.0)"

    def _choice(self, condition: str, true: str, false: str) -> str:
        return f"jnp.where({condition}, {true}, {false})"

    def _truth(self, condition: str) -> str:
        return f"jnp.where({condition}, 1.0, 0.0)"

    def _function(self, op: str) -> str:
        return FUNCTIONS[op]

    def _gathered(self, array: str, first: int, count: int, index: str) -> str:
        self.arrays.add(array)
        return f"kg_gather({python_name(array)}[{first}:{first + count}], {index})"

    def _element(self, array: str, index: int) -> str:
        return super()._element(python_name(array), index)
