"""Contacts by hand for the C runtime: a frozen configuration whose rows are matrices, through ctypes.

``u' = a + M W^T lambda`` with ``M = Q^-1``; rows ``W u' + w0``, rates ``W u + rate``.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from ccompile import host_source, shared_library
from numpy.typing import ArrayLike, NDArray

from kanegen.codes import ContactLaw, Mode, Paradox, Status

Array = NDArray[np.float64]

OPEN, PENETRATED, CLOSED, STICK, SLIP = Mode
STABILIZED, COMPLIANT, RESTITUTION, BILATERAL, LATCH, LOAD = ContactLaw
OK, SINGULAR, NO_MODE, SEVERAL_MODES = Status.OK, Status.SINGULAR, Status.NO_MODE, Status.SEVERAL_MODES
SETTLE, IMPACT, RHS, GUARDS, PROPOSE, PARADOX = (1 << k for k in range(6))


@dataclass(frozen=True)
class Contact:
    """One contact; rows as vectors over the speeds."""

    normal: ArrayLike | None = None
    tangents: tuple[ArrayLike, ...] = ()
    law: int = RESTITUTION
    mu: float | tuple[float, float] = 0.0
    gap: float = 0.0
    normal_rate: float = 0.0
    slip: tuple[float, ...] = ()
    bias: tuple[float, ...] = ()
    target: tuple[float, ...] = ()
    load: float = 0.0
    restitution: float = 0.0
    creep: float = 0.0
    closed: int = 0
    paradox: Paradox = Paradox.ERROR

    @property
    def rows(self) -> list[Array]:
        own = ([] if self.normal is None else [self.normal]) + list(self.tangents)
        return [np.asarray(row, float) for row in own]

    @property
    def friction(self) -> tuple[float, float]:
        """mu_s, mu_k."""
        return self.mu if isinstance(self.mu, tuple) else (self.mu, self.mu)


def padded(values: tuple[float, ...], n: int) -> list[float]:
    return [*values, *([0.0] * (n - len(values)))]


@dataclass(frozen=True)
class Case:
    """A model at one state: ``Q`` (n_u, n_u), ``a`` (n_u,) free accelerations, its contacts, the speeds ``u``."""

    Q: Array
    a: ArrayLike
    contacts: tuple[Contact, ...]
    u: ArrayLike | None = None

    @property
    def n_u(self) -> int:
        return len(self.Q)

    @cached_property
    def M(self) -> Array:
        return np.linalg.inv(self.Q)

    @cached_property
    def W(self) -> Array:
        return np.array([row for c in self.contacts for row in c.rows])

    @property
    def D(self) -> Array:
        return np.asarray(self.W @ self.M @ self.W.T)

    @property
    def speeds(self) -> Array:
        return np.zeros(self.n_u) if self.u is None else np.asarray(self.u, float)

    def section(self, name: str) -> Array:
        """Values of ``w0``, ``value``, ``rate`` or ``target``, row by row."""
        values: list[float] = []
        for c in self.contacts:
            n, normal = len(c.rows), c.normal is not None
            values += {
                "w0": padded(c.bias, n),
                "value": padded((c.gap,) if normal else (), n),
                "rate": padded(((c.normal_rate,) if normal else ()) + c.slip, n),
                "target": padded(c.target, n),
            }[name]
        return np.array(values)

    @property
    def free(self) -> Array:
        """Row accelerations without contact forces."""
        return np.asarray(self.W @ np.asarray(self.a, float) + self.section("w0"))

    @property
    def rates(self) -> Array:
        return np.asarray(self.W @ self.speeds + self.section("rate"))

    def parameters(self) -> Array:
        head = [self.n_u, len(self.W), len(self.contacts)]
        rows = [self.section(name) for name in ("w0", "value", "rate", "target")]
        ends = [[c.load for c in self.contacts]]
        ends += [[c.friction[k] for c in self.contacts] for k in (0, 1)]
        ends += [[c.restitution for c in self.contacts], [c.creep for c in self.contacts]]
        return np.concatenate([head, self.M.ravel(), np.asarray(self.a, float), self.W.ravel(), *rows, *ends])

    def info(self) -> NDArray[np.int32]:
        row, entries = 0, []
        for c in self.contacts:
            normal = -1 if c.normal is None else row
            tangent = row + (c.normal is not None) if c.tangents else -1
            entries.append([c.law, normal, tangent, len(c.tangents), c.closed + 2 * c.paradox])
            row += len(c.rows)
        return np.array(entries, dtype=np.int32)

    def at(self, **changes: Any) -> Case:
        return replace(self, **changes)


@dataclass(frozen=True)
class Result:
    """What the runtime says: ``force`` are multipliers, after an impact alone impulses."""

    status: int
    modes: list[int]
    direction: Array
    u: Array
    force: Array
    udot: Array
    guards: Array
    culprit: int


@dataclass(frozen=True)
class Runtime:
    """The compiled runtime."""

    folder: Path
    library: ctypes.CDLL = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "library", shared_library(host_source("contact_rows.c"), self.folder))

    def __call__(
        self,
        case: Case,
        what: int = SETTLE | RHS,
        *,
        modes: list[int] | None = None,
        direction: ArrayLike | None = None,
        before: ArrayLike | None = None,
        tolerances: tuple[float, float] = (1e-9, 1e-9),
        prefer: bool = False,
        plastic: bool = False,
        guard: int = 0,
    ) -> Result:
        n, k, m = case.n_u, len(case.W), len(case.contacts)
        mode = np.full(m, -1, np.int32) if modes is None else np.array(modes, np.int32)
        heading = np.zeros((m, 2)) if direction is None else np.array(direction, float).reshape(m, 2)
        u, force, udot, guards = case.speeds.copy(), np.zeros(k), np.zeros(n), np.zeros((m, 4))
        culprit = ctypes.c_int(-2)
        arrays: list[Any] = [np.array([n, k, m], np.int32), case.info(), case.parameters()]
        arrays += [np.array([*tolerances, prefer, plastic, guard], float), mode, heading, u]
        arrays += [None if before is None else np.array(before, float), force, udot, guards]
        pointers = [None if x is None else x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
        status = self.library.run(what, *pointers, ctypes.byref(culprit))
        return Result(status, mode.tolist(), heading, u, force, udot, guards, culprit.value)


def spd(rng: np.random.Generator, n: int) -> np.ndarray:
    """A random symmetric positive definite matrix (n, n) of moderate condition."""
    L = rng.normal(size=(n, n))
    return np.asarray(L @ L.T + n * np.eye(n))


@cache
def runtime_of_session() -> Runtime:
    """Compiled once."""
    with TemporaryDirectory() as folder:
        return Runtime(Path(folder))
