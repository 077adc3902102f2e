"""Derivatives as SymPy writes them for symbols that it does not know to be real, in their form for real arguments.

``dynamicsymbols("x")`` has no assumptions. SymPy then differentiates ``Abs(x)`` as that of a complex number,
``(re(x)*Derivative(re(x), x) + im(x)*Derivative(im(x), x))*sign(x)/x``, and leaves the derivatives of re, im,
conjugate and sign unevaluated. Every quantity of a model is real: re and conjugate are their argument, im is 0, and
the product is ``sign(x)`` without the division, at x = 0 too. SymPy expands ``re(tan(x))`` and others, and what is left
of the product divides by the argument; the derivative of Abs is therefore recognized before.

The derivative of sign is ``2*DiracDelta``. Next to a factor that vanishes at the jump, as in
``x*Derivative(sign(x), x)``, it is 0; alone it is an impulse, which the lowering refuses.
"""

from __future__ import annotations

from typing import Any, Final

import sympy

_DERIVED: Final = (sympy.re, sympy.im, sympy.conjugate, sympy.sign)


def may_differ(product: Any) -> bool:
    """Whether a product has a factor because of which :func:`real_form` may differ from it; this is fast."""
    return any(
        isinstance(factor.expr, _DERIVED)
        if isinstance(factor, sympy.Derivative)
        else isinstance(factor, sympy.sign | sympy.DiracDelta)
        for factor in product.args
    )


def real_form(expr: Any) -> Any:
    """An expression equal to ``expr`` for real arguments, with the derivatives that SymPy leaves unevaluated."""
    real = expr.replace(sympy.Mul, _without_absolute) if expr.has(sympy.sign) and expr.has(sympy.re) else expr
    real = real.replace(sympy.re, _itself).replace(sympy.conjugate, _itself).replace(sympy.im, _zero)
    real = real.replace(sympy.Derivative, _derivative)
    return real.replace(sympy.Mul, _without_impulse) if real.has(sympy.DiracDelta) else real


def _itself(argument: Any) -> Any:
    return argument


def _zero(argument: Any) -> Any:
    return sympy.S.Zero


def _derivative(operand: Any, *variables: Any) -> Any:
    """The derivative; that of a coordinate or speed is left as it is."""
    (variable, order), *others = (tuple(v) if isinstance(v, sympy.Tuple) else (v, 1) for v in variables)
    if isinstance(operand, sympy.sign):
        once = 2 * sympy.DiracDelta(operand.args[0]) * operand.args[0].diff(variable)
        return once.diff(*((variable, order - 1), *others)) if order > 1 or others else once
    return sympy.Derivative(operand, *variables).doit(deep=False)


def _without_absolute(*factors: Any) -> Any:
    """The product of the factors, with ``sign(x)`` times the derivative of x in place of that of ``Abs(x)``."""
    product = sympy.Mul(*factors)
    parts = [factor for factor in factors if factor.has(sympy.re)]
    variables = {d.variables[0] for part in parts for d in part.atoms(sympy.Derivative) if isinstance(d.expr, sympy.re)}
    for operand in [factor.args[0] for factor in factors if isinstance(factor, sympy.sign)]:
        for variable in sorted(variables, key=str):
            derivative = sympy.Abs(operand).diff(variable)
            changing = [factor for factor in sympy.Mul.make_args(derivative) if factor.has(sympy.re)]
            if changing and all(factor in parts for factor in changing):
                return product / derivative * sympy.sign(operand) * operand.diff(variable)
    return product


def _without_impulse(*factors: Any) -> Any:
    """The product of the factors; 0 if it has an impulse where another factor vanishes."""
    impulses = [f.args[0] for f in factors if isinstance(f, sympy.DiracDelta) and len(f.args) == 1]
    vanishes = any(f.xreplace({x: sympy.S.Zero}).is_zero for x in impulses for f in factors)
    return sympy.S.Zero if vanishes else sympy.Mul(*factors)
