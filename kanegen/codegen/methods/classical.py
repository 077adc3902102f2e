"""Explicit Runge-Kutta methods of orders 4 and 5, with rational coefficients."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from kanegen.codegen.methods.method import Method, StepControl
from kanegen.codegen.methods.tableaux import ErrorEstimate, Tableau, row


def _rk4() -> Tableau:
    return Tableau(
        order=4,
        dense_order=3,
        stages=4,
        c=row("0 1/2 1/2 1 1"),
        a=(row(""), row("1/2"), row("0 1/2"), row("0 0 1"), row("1/6 1/3 1/3 1/6")),
    )


def _kutta_merson() -> Tableau:
    # The estimate is Merson's, exact for linear equations with constant coefficients only.
    return Tableau(
        order=4,
        dense_order=3,
        stages=5,
        c=row("0 1/3 1/3 1/2 1 1"),
        a=(
            row(""),
            row("1/3"),
            row("1/6 1/6"),
            row("1/8 0 3/8"),
            row("1/2 0 -3/2 2"),
            row("1/6 0 0 2/3 1/6"),
        ),
        errors=(ErrorEstimate(3, row("1/15 0 -3/10 4/15 -1/30 0")),),
    )


def _dopri5() -> Tableau:
    return Tableau(
        order=5,
        dense_order=4,
        stages=6,
        c=row("0 1/5 3/10 4/5 8/9 1 1"),
        a=(
            row(""),
            row("1/5"),
            row("3/40 9/40"),
            row("44/45 -56/15 32/9"),
            row("19372/6561 -25360/2187 64448/6561 -212/729"),
            row("9017/3168 -355/33 46732/5247 49/176 -5103/18656"),
            row("35/384 0 500/1113 125/192 -2187/6784 11/84"),
        ),
        errors=(ErrorEstimate(4, row("71/57600 0 -71/16695 71/1920 -17253/339200 22/525 -1/40")),),
        dense=(
            row(
                "-12715105075/11282082432 0 87487479700/32700410799 -10690763975/1880347072"
                " 701980252875/199316789632 -1453857185/822651844 69997945/29380423"
            ),
        ),
    )


RK4: Final = Method("rk4", "the classical Runge-Kutta method (Kutta 1901)", None, _rk4)

KUTTA_MERSON: Final = Method("kutta_merson", "the method of Kutta and Merson (Merson 1957)", None, _kutta_merson)

DOPRI5: Final = Method(
    "dopri5",
    "the method of Dormand and Prince of order 5(4) (1980), dense output by Shampine and Hairer",
    StepControl(order=5, safety=Fraction("0.9"), shrink=Fraction("0.2"), grow=Fraction(10), beta=Fraction("0.04")),
    _dopri5,
)
