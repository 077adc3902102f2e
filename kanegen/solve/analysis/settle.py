"""Steady states of systems with contacts: which contacts are closed, and which of them are at their friction limit.

The contacts are taken as they are at the start, and changed where the solution contradicts them. If this fails, all
gaps and forces are found together from their complementarity, with compliant contacts as rigid ones, and the
penetrations of the latter follow from their laws. If this fails too, the search begins with all contacts closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.analysis.balance import Balance
from kanegen.solve.analysis.newton import Root, nearest, solved
from kanegen.solve.analysis.supports import ONE_SIDED, Normal, Support, revised, touching, undecided
from kanegen.solve.feedback.laws import UNLIMITED_LAWS
from kanegen.solve.values import listed

_ZERO_GAP = 1e-9
"""Gaps below this fraction of their terms count as zero."""
_NEUTRAL = 1e-7
"""Eigenvalues below this fraction of the largest count as zero: half the digits of double ones are rounding errors."""
_SHOWN = 5
"""Most equations in a message."""
_SMALLEST = 1e-12
"""Where the search for a penetration begins, in any unit: it is doubled to 1e6 and halved to 1e-24."""
_DOUBLINGS = 60
_HALVINGS = 40
_LATER = (1.0, 2.718281828459045)
"""When the equations of a steady state must still hold, in times of the slowest motion about it."""


def steady_state(balance: Balance, start: Array, tolerance: float) -> tuple[Balance, Root]:
    """The steady state near ``start`` and its equations, with the contacts as they are in it.

    Raises `SolveError` if none is found, with the equations that are violated most, and if it exists at one time only.
    """
    failed: list[tuple[Balance, Root]] = []
    for supports, begin in _attempts(balance, start, tolerance):
        settled, root, is_consistent = _settled(replace(balance, supports=supports), start, begin, tolerance)
        if is_consistent:
            _require_constant(settled, root)
            return settled, root
        failed.append((settled, root))
    raise SolveError(_failure(*min(failed, key=lambda item: item[1].error)))


def _attempts(balance: Balance, start: Array, tolerance: float) -> Iterator[tuple[tuple[Support, ...], Array]]:
    """Contacts and starts of the search, in the order in which they are tried."""
    yield balance.supports, start
    is_one_sided = any(support.contact.law in ONE_SIDED for support in balance.supports)
    if is_one_sided:
        yield undecided(balance.supports), start
        # Far from a contact Fischer's function hardly depends on the gap, so that Newton's method can fail there.
        yield touching(balance.supports), start
    for relaxed in _relaxed(balance, start, tolerance):
        yield balance.supports, relaxed
        if is_one_sided:
            yield undecided(balance.supports), relaxed


def _relaxed(balance: Balance, start: Array, tolerance: float) -> Iterator[Array]:
    """Starts of further attempts if laws have no slope at ``start``, because they are saturated or in a dead band.

    The first balances the forces with inputs that no law determines. The second, found from it, has the inputs of the
    laws without limits.
    """
    if balance.laws:
        free = solved(replace(balance, laws=()), start, tolerance).X
        yield free
        if UNLIMITED_LAWS in balance.description.functions:
            yield solved(replace(balance, law_function=UNLIMITED_LAWS), free, tolerance).X


def _settled(balance: Balance, start: Array, begin: Array, tolerance: float) -> tuple[Balance, Root, bool]:
    """Equations, root, and whether the root satisfies all contact laws; the last root if none does.

    The search begins at ``begin``; of a family, the root nearest to ``start`` is returned.
    """
    X, seen = begin, {balance.supports}
    while True:
        root = solved(balance, X, tolerance)
        if not root.converged:
            return balance, root, False
        if not any(support.normal is Normal.EITHER for support in balance.supports):
            root = nearest(balance, root, start, tolerance)
        supports = _revised_supports(balance, root, tolerance)
        if supports == balance.supports:
            return balance, root, True
        if supports in seen:
            return balance, root, False
        seen.add(supports)
        softened = [
            a.index
            for a, b in zip(supports, balance.supports, strict=True)
            if b.normal is not Normal.LAW and a.normal is Normal.LAW
        ]
        balance = replace(balance, supports=supports)
        X = _penetrated(balance, root.X, softened)


def is_settled(balance: Balance, root: Root, tolerance: float) -> bool:
    """Whether the contacts of a root satisfy their laws in their present modes."""
    return _revised_supports(balance, root, tolerance) == balance.supports


def _revised_supports(balance: Balance, root: Root, tolerance: float) -> tuple[Support, ...]:
    if not balance.supports:
        return ()
    forces = balance.parts(root.X)[-1]
    limits = _ZERO_GAP * balance.contact_terms(root.X).value, tolerance * float(root.sizes[-len(forces) :].max())
    return revised(balance.supports, balance.contact_values(root.X), forces, balance.responses, limits)


def _penetrated(balance: Balance, X: Array, contacts: Iterable[int]) -> Array:
    """X with the coordinates moved until the forces of these compliant contacts are those in X, as far as possible."""
    numbers = list(contacts)
    if not numbers:
        return X
    rows = [balance.supports[m].contact.normal for m in numbers]
    slopes = balance.slopes(X)
    n_q, n_k = slopes.columns["q"], len(balance.responses)
    G = slopes.of("contacts", "q")[n_k : 2 * n_k][rows]
    wanted, gaps = balance.parts(X)[-1][rows], balance.contact_values(X).value[rows]
    movement = np.linalg.pinv(G)

    def moved(depth: Array) -> Array:
        Y = X.copy()
        Y[:n_q] -= movement @ (gaps + depth)
        return Y

    def enough(depth: Array) -> NDArray[np.bool_]:
        return balance.contact_values(moved(depth)).load[numbers] >= wanted

    high = np.full(len(rows), _SMALLEST)
    for _ in range(_DOUBLINGS):
        high = np.where(enough(high), high, 2.0 * high)
    low = np.zeros(len(rows))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        reached = enough(middle)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return moved(high)


def _require_constant(balance: Balance, root: Root) -> None:
    """Raise `SolveError` if the equations hold at one time only."""
    slowest = _slowest(balance, root.X)
    for later in (slowest * part for part in _LATER):
        values = replace(balance, t=balance.t + later).values(root.X)
        wrong = np.abs(values) > 1e3 * root.allowed
        if wrong.any():
            labels = [label for label, bad in zip(balance.all_labels(root.X), wrong, strict=True) if bad]
            raise SolveError(
                f"the equations of {balance.description.name!r} depend on time: they hold at t = {balance.t!r} s, but "
                f"not {later:g} s later ({', '.join(labels[:_SHOWN])}); replace the functions of time by inputs"
            )


def _slowest(balance: Balance, X: Array) -> float:
    """The time of the slowest motion about a steady state, the inverse of an eigenvalue; 1 s if it has none."""
    rates = np.abs(np.linalg.eigvals(balance.slopes(X).matrix("jacobian")))
    rates = rates[rates > _NEUTRAL * rates.max(initial=0.0)]
    return 1.0 / float(rates.min()) if rates.size else 1.0


def _failure(balance: Balance, root: Root) -> str:
    """The message with the equations that are violated most, and advice."""
    name, labels = balance.description.name, balance.all_labels(root.X)
    if root.converged:
        return (
            f"no modes of the contacts of {name!r} are consistent with a steady state near the start: give a start in "
            f"which the contacts are open or closed as in the state that is expected"
        )
    order = np.argsort(-np.abs(root.F) / root.allowed)[:_SHOWN]
    worst = [k for k in order if abs(root.F[k]) > root.allowed[k]]
    problems = [f"{labels[k]} = {root.F[k]:.6g}, allowed {root.allowed[k]:.3g}" for k in worst]
    rigid = [labels[k] for k in worst if not np.abs(balance.jacobian(root.X)[k]).any()]
    advice = "give a start nearer to the steady state, let inputs balance the forces (free_inputs=...), or fix less"
    if rigid:
        advice = (
            f"no unknown changes {', '.join(rigid)}: nothing balances these forces, so that there is no steady state "
            "unless inputs do (free_inputs=...), or less is fixed"
        )
    headline = f"no steady state of {name!r} was found after {root.evaluations} evaluations; violated most are"
    return listed(headline, problems, advice)
