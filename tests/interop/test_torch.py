"""Motions as PyTorch functions: values, derivatives in all ways that PyTorch has, batches, and refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import jump_models
import numpy as np
import pytest
from messages import raises
from sensitivity_models import k, line, x
from systems import solver_for

import kanegen as kg

pytestmark = pytest.mark.target
torch = pytest.importorskip("torch")
TIMES = np.linspace(0.0, 1.5, 4)
TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12}


@cache
def solver() -> kg.Solver:
    return kg.build(line("oscillator", -k * x, {k: 4.0}))


def oscillation(**options: Any) -> Any:
    """x and v of an oscillator at `TIMES`, as a function of its stiffness and its start."""
    return kg.interop.torch.motion(solver(), TIMES, ("k", "x"), u0={"v": 0.0}, **TIGHT, **options)


def exact(z: Any) -> Any:
    w, t = torch.sqrt(z[..., :1]), torch.as_tensor(TIMES, dtype=z.dtype)
    return torch.stack((z[..., 1:] * torch.cos(w * t), -z[..., 1:] * w * torch.sin(w * t)), dim=-1)


def tensor(values: Any, **options: Any) -> Any:
    return torch.tensor(values, dtype=torch.float64, **options)


def close(found: Any, wanted: Any, tolerance: float = 1e-8) -> None:
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


def test_a_motion_has_gradients() -> None:
    z, same = (tensor([4.0, 0.7], requires_grad=True) for _ in range(2))
    function = oscillation()
    loss, wanted = ((f(z)[-1] ** 2).sum() for f, z in ((function, z), (exact, same)))
    loss.backward()
    wanted.backward()
    close(function(z), exact(z))
    close(z.grad, same.grad)
    assert torch.autograd.gradcheck(function, (z,), eps=1e-5, atol=1e-7)


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_have_the_gradients_of_their_motions(threads: int) -> None:
    z = tensor([[[4.0, 0.7], [5.0, -0.2]], [[3.0, 0.1], [2.0, 1.0]]], requires_grad=True)
    function = oscillation(threads=threads)
    assert function(z).shape == (2, 2, 4, 2)
    found, wanted = (torch.autograd.grad((f(z)[..., -1, 0] ** 3).sum(), z)[0] for f in (function, exact))
    close(found, wanted)
    assert function(tensor(np.zeros((0, 2)))).shape == (0, 4, 2)


def test_transformations_of_functions() -> None:
    function, z = oscillation(), tensor([[4.0, 0.7], [5.0, -0.2], [3.0, 0.1]])
    close(torch.func.jacrev(function)(z[0]), torch.func.jacrev(exact)(z[0]))
    close(torch.func.vmap(function)(z), exact(z))
    close(torch.func.vmap(function, in_dims=1)(z.T), exact(z))

    def loss(f: Any) -> Any:
        return lambda z: (f(z)[-1] ** 2).sum()

    close(torch.func.vmap(torch.func.grad(loss(function)))(z), torch.func.vmap(torch.func.grad(loss(exact)))(z))


def test_second_derivatives_are_refused() -> None:
    z = tensor([4.0, 0.7], requires_grad=True)
    (slope,) = torch.autograd.grad((oscillation()(z) ** 2).sum(), z, create_graph=True)
    with raises(kg.SolveError, "no second derivatives"):
        torch.autograd.grad(slope.sum(), z)
    with raises(kg.SolveError, "no second derivatives"):
        torch.func.jacrev(torch.func.jacrev(oscillation()))(z)


def test_derivatives_are_computed_where_they_are_needed() -> None:
    """A ball that comes to rest has no derivatives after that, which a warning tells when they are computed."""
    function = kg.interop.torch.motion(solver_for("bouncing_ball"), (0.0, 6.0), ("e",), {"z": 1.0}, {"u1": 0.0})
    e = tensor([0.8], requires_grad=True)
    with torch.no_grad():
        assert torch.isfinite(function(e)).all()
    with pytest.warns(kg.ModelWarning, match="infinitely many impacts"):
        y = function(e)
    assert torch.isnan(torch.autograd.grad(y.sum(), e)[0]).all()


def test_single_precision_is_that_of_the_arguments_only() -> None:
    z = torch.tensor([4.0, 0.7], requires_grad=True)
    y = oscillation()(z)
    assert y.dtype == torch.float32
    close(y, exact(z.detach().double()).float(), 1e-6)
    y[-1, 0].backward()
    assert z.grad is not None
    assert z.grad.dtype == torch.float32


def test_impacts() -> None:
    """Two elastic balls: what moves the first one moves the second one after the impact."""
    balls = kg.build(jump_models.balls())
    function = kg.interop.torch.motion(balls, (0.0, 1.0), ("x1", "x2", "v1", "v2"), **TIGHT)
    slopes = torch.func.jacrev(lambda z: function(z)[-1, 1])(tensor([0.0, 0.52, 1.0, 0.0]))
    close(slopes, tensor([1.0, 0.0, 1.0, 0.0]))


def test_wrong_arguments_are_named() -> None:
    function = oscillation()
    with raises(kg.SolveError, "z has the type torch.float64 and the shape (3,)", "(..., 2): k, x"):
        function(tensor([1.0, 2.0, 3.0]))
    with raises(kg.SolveError, "torch.int64", "floating-point"):
        function(torch.tensor([1, 2]))
    with raises(kg.SolveError, "motion 1: ", "nan"):
        function(tensor([[4.0, 0.7], [4.0, np.nan]]))
    with raises(kg.SolveError, "with_respect_to", "'y'"):
        kg.interop.torch.motion(solver(), TIMES, ("y",))
    with raises(kg.SolveError, "expected at least two times"):
        kg.interop.torch.motion(solver(), [0.0], ("k",))
