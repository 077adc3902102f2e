"""RODAS, a Rosenbrock method of order 4(3) for stiff equations.

Source: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, 2nd ed. 1996, section IV.7, and the authors'
code ``rodas.f``; coefficients of G. Steinebach (1995).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from kanegen.codegen.methods.method import Method, StepControl
from kanegen.codegen.methods.rosenbrock import Rosenbrock
from kanegen.codegen.methods.tableaux import row


def _rodas() -> Rosenbrock:
    # Of the sets of coefficients in Hairer and Wanner's code RODAS this one loses the least of its order on stiff
    # components that follow a slow motion: on the problem of Prothero and Robinson, at a tolerance of 1e-10, it takes a
    # sixteenth of the steps of the first set.
    return Rosenbrock(
        order=4,
        dense_order=3,
        gamma=Fraction(1, 4),
        a=(
            row(""),
            row("3"),
            row("1.831036793486759 0.4955183967433795"),
            row("2.304376582692669 -0.05249275245743001 -1.176798761832782"),
            row("-7.170454962423024 -4.741636671481785 -16.31002631330971 -1.062004044111401"),
            row("-7.170454962423024 -4.741636671481785 -16.31002631330971 -1.062004044111401 1"),
        ),
        C=(
            row(""),
            row("-12"),
            row("-8.791795173947035 -2.207865586973518"),
            row("10.81793056857153 6.780270611428266 19.5348594464241"),
            row("34.19095006749676 15.49671153725963 54.7476087596413 14.16005392148534"),
            row("34.62605830930532 15.30084976114473 56.99955578662667 18.40807009793095 -5.714285714285717"),
        ),
        c=row("0 0.75 0.21 0.63 1 1"),
        d=row("0.25 -0.5 -0.023504 -0.0362 0 0"),
        m=row("-7.170454962423024 -4.741636671481785 -16.31002631330971 -1.062004044111401 1 1"),
        dense=(
            row("25.09876703708589 11.62013104361867 28.49148307714626 -5.664021568594133 0 0"),
            row("1.638054557396973 -0.7373619806678748 8.47791821923899 15.9925314877952 -1.882352941176471 0"),
        ),
        tolerance=Fraction(1, 10**14),
    )


RODAS: Final = Method(
    "rodas",
    "RODAS, L-stable and of order 4(3), with the coefficients of Steinebach (1995, RODASP)",
    StepControl(order=4, safety=Fraction("0.9"), shrink=Fraction("0.2"), grow=Fraction(6)),
    _rodas,
)
