"""The C peer: what SymPy alone gives, ``cse`` and the C99 printer, with the same compiler and flags."""

from __future__ import annotations

from pathlib import Path

import sympy as sm
from sympy.codegen.rewriting import create_expand_pow_optimization
from sympy.printing.c import C99CodePrinter

from kanegen.bench.harness import timed_library
from kanegen.bench.kane import KaneEquations
from kanegen.codegen.printer import comment
from kanegen.codegen.sources import render, runtime_headers


def peer_source(equations: KaneEquations) -> str:
    """The C text of the peer: ``cse`` of q', mass matrix and forcing together, then a solve in loops.

    Of a symmetric mass matrix only the lower triangle is formed, which is all that Cholesky reads.
    """
    size = equations.sizes["u"]
    places = [(i, j) for i in range(size) for j in range(size if equations.constrained else i + 1)]
    entries = [equations.mass[i, j] for i, j in places]
    expressions = [*equations.qdot, *entries, *equations.forcing]
    temporaries, reduced = sm.cse(expressions, symbols=sm.numbered_symbols("x"))
    printer = C99CodePrinter()
    # A careful user replaces pow(x, 2) and pow(x, -3) by products.
    expand = create_expand_pow_optimization(4, base_req=lambda base: True)
    texts = [printer.doprint(expand(expression)) for expression in reduced]
    n_q = equations.sizes["q"]
    masses = [(i, j, text) for (i, j), text in zip(places, texts[n_q:], strict=False)]
    return render(
        "bench_peer.c.jinja",
        name=comment(equations.name),
        sizes=equations.sizes,
        constrained=equations.constrained,
        temporaries=[(symbol, printer.doprint(expand(expression))) for symbol, expression in temporaries],
        qdot=texts[:n_q],
        mass=masses,
        forcing=texts[n_q + len(places) :],
    )


def peer_library(equations: KaneEquations, folder: Path) -> Path:
    """The compiled peer, linked with the timing loop; its only function is ``rhs``. Raises `BuildError`."""
    return timed_library({**runtime_headers(), "peer.c": peer_source(equations)}, "peer.c", folder)
