"""Models with contacts in C, advanced by the steps of kg_moreau.h, through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ccompile
import numpy as np
from contact_rows import Case
from numpy.typing import ArrayLike, NDArray

import kanegen as kg
from kanegen.codegen.description import Description
from kanegen.pipeline import sources_of

FUNCTIONS = ("rhs", "qdot")


@dataclass(frozen=True)
class Steps:
    """States after each step, and the mean contact forces of the steps."""

    status: int
    t: NDArray[Any]
    q: NDArray[Any]
    u: NDArray[Any]
    forces: NDArray[Any]


class Stepper:
    """A model whose kernel is compiled with the host."""

    def __init__(self, model: kg.Model, folder: Path, flags: Sequence[str] = (), real: Any = np.float64) -> None:
        sources = sources_of(model, functions=FUNCTIONS)
        self.model, self.real = model, real
        text = f'#include "{sources.kernel}"\n#include "moreau_run.c"\n'
        for name, content in sources.files.items():
            (folder / name).write_text(content, encoding="utf-8")
        target = folder / "moreau.so"
        ccompile.compile_source(ccompile.C_COMPILER, text, target, "-O1", "-shared", "-fPIC", *flags)
        self.run = ctypes.CDLL(str(target)).run
        kind = np.ctypeslib.as_ctypes_type(real)
        self.run.argtypes = [ctypes.c_int, ctypes.c_int, kind, kind, *[ctypes.c_void_p] * 6]
        description = Description.from_sources(sources)
        self.parameters, self.n_gains = description.parameters, description.constraints.n_gains
        contacts = model.resolved_contacts
        self.n_rows = sum(contact.n_rows for contact in contacts)

    def __call__(
        self,
        span: float,
        step: float,
        q: ArrayLike,
        u: ArrayLike,
        *,
        sweeps: int = 50,
        t: float = 0.0,
        parameters: Mapping[str, float] | None = None,
        inputs: ArrayLike = (),
        states: ArrayLike = (),
    ) -> Steps:
        n, n_q = round(span / step), len(self.model.coordinates)
        known = {str(k): v for k, v in self.model.parameters.items()} | dict(parameters or {})
        p = np.array([*(known[name] for name in self.parameters), *np.zeros(self.n_gains)], self.real)
        y = np.array([*np.ravel(q), *np.ravel(u), *np.ravel(states)], self.real)
        r = np.array([*np.ravel(inputs), 0.0], self.real)
        impulses = np.zeros(self.n_rows, self.real)
        motion, forces = np.zeros((n, len(y)), self.real), np.zeros((n, self.n_rows), self.real)
        arrays = [x.ctypes.data_as(ctypes.c_void_p) for x in (p, y, r, impulses, motion, forces)]
        status = self.run(n, sweeps, t, step, *arrays)
        times = t + step * np.arange(1, n + 1)
        end = n_q + len(self.model.speeds)
        return Steps(status, times, motion[:, :n_q], motion[:, n_q:end], forces)


class FrozenStepper:
    """One step of a configuration whose rows are matrices."""

    def __init__(self, folder: Path) -> None:
        self.step = ccompile.shared_library(ccompile.host_source("moreau_rows.c"), folder).step

    def __call__(
        self, case: Case, h: float = 1e-2, *, sweeps: int = 50, impulses: ArrayLike | None = None, status: int = 0
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The speeds after the step, and the impulses of the rows; the step must have the ``status``."""
        n, k, m = case.n_u, len(case.W), len(case.contacts)
        y, r = np.concatenate([np.zeros(n), case.speeds]), np.zeros(k)
        found = np.zeros(k) if impulses is None else np.array(impulses, float)
        arrays = [np.array([n, k, m], np.int32), case.info(), case.parameters()]
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
        results = [x.ctypes.data_as(ctypes.c_void_p) for x in (y, r, found)]
        assert self.step(*pointers, sweeps, ctypes.c_double(h), *results) == status
        return y[n:], found
