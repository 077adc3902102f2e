"""The table that a run over SymPy's tests ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sympy_suite.compare import Outcome

WIDTH = 72


def table(outcomes: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """A line for every model: its sizes, the largest deviation or the reason of the refusal, and the times."""
    yield f"{'test':{WIDTH}} {'n_q n_u n_d aux':15} {'deviation':>9} {'SymPy/s':>8} {'kanegen/s':>9} {'ratio':>6}"
    for test, models in sorted(outcomes.items()):
        for outcome in models:
            sizes = "".join(f"{size:>3} " for size in outcome.sizes.split())
            yield f"{test[-WIDTH:]:{WIDTH}} {sizes:15} {_result(outcome)}"


def _result(outcome: Outcome) -> str:
    if outcome.refusal:
        return "refused: " + outcome.refusal.splitlines()[0]
    if outcome.deviation is None:
        return "error: " + outcome.error.splitlines()[-1]
    ratio = outcome.sympy_seconds / outcome.kanegen_seconds
    return f"{outcome.deviation:9.1e} {outcome.sympy_seconds:8.2f} {outcome.kanegen_seconds:9.2f} {ratio:6.1f}"


def counts(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """How many models agree, are refused or fail, and the largest deviation of those that agree."""
    models = [outcome for found in outcomes.values() for outcome in found]
    agree = [outcome.deviation for outcome in models if outcome.agrees and outcome.deviation is not None]
    refused = sum(bool(outcome.refusal) for outcome in models)
    return (
        f"{len(models)} models of SymPy's tests: {len(agree)} agree (largest deviation "
        f"{max(agree, default=0.0):.1e} of the terms), {refused} refused, {len(models) - len(agree) - refused} fail"
    )
