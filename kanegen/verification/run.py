"""The self-checks of a model: the function :func:`verify` and its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kanegen.errors import VerificationError, brief
from kanegen.model import Model
from kanegen.verification.report import Report


def verify(
    model: Model,
    states: int = 10,
    seed: int = 0,
    form: str = "auto",
    start: Mapping[str, Any] | None = None,
    forms: Iterable[str] | None = None,
    backend: str = "cython",
) -> Report:
    """Check the equations and the compiled code of a model at random states, without reference results.

    Kane's equations are compared with those of Lagrange, Gibbs and Appell, and Hamilton, with the balance of power and
    Gauss' principle; derivatives with differences; compiled functions with the program in NumPy and in 50 digits; the
    forms of the equations with each other. The report says why a check does not apply to the model.

    Parameters
    ----------
    model
        The system. Parameters without a value get random positive ones.
    states, seed
        Number of random states, and the seed of their generator; every second state satisfies the constraints, and
        every third one has zeros, right and straight angles, equal coordinates and zero speeds.
    form
        Form of the equations whose functions are all checked, as for :func:`kanegen.build`.
    start
        ``{"t":, "q":, "u":, "r":, "s":}``, a typical state of the model, around which states are drawn: arrays, or
        mappings by name or symbol. What it leaves open is taken from ``Model(initial=...)``; without values there the
        absolute values of coordinates lie between 0.2 and 1.1 (m, rad).
    forms
        Other forms, whose right-hand sides are built and compared; None means all of :data:`kanegen.forms.FORMS`.
    backend
        The back end whose functions are checked, as for :func:`kanegen.build`: ``"interpreted"`` needs no C compiler.

    Returns
    -------
    Report
        Its ``str()`` is a table of principles, deviations and tolerances.

    Raises
    ------
    VerificationError
        If a principle is violated (``report`` of the error has all rows), or if no regular state is found.
    BuildError, DerivationError, ModelError
        As for :func:`kanegen.build`.
    """
    # The checks are imported here, so that kanegen is imported without them.
    from kanegen.verification.checks import check_model

    for what, value, least in (("states", states, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise VerificationError(f"{what} is {brief(value)}; expected an integer, at least {least}")
    return check_model(model, states, seed, form, start, forms, backend)
