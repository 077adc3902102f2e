"""Functions for the Jacobians of the right-hand side, of the constraints' residuals and of the outputs.

The Jacobian is that of the stabilized right-hand side where the model can be stabilized: with gains of zero it is the
bare one. See :mod:`kanegen.derivation.sensitivities` for the equations.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final

from kanegen.derivation import forms
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.derivation.sensitivities import ARGUMENTS, Sensitivities
from kanegen.forms import FORMS
from kanegen.graph import Node, substitute
from kanegen.program.functions.columns import bordered_columns, reduced_columns
from kanegen.program.functions.quantities import quantity
from kanegen.program.kernels.linear import multipliers_work
from kanegen.program.records import Block, Call, Function, Invoke, Step, Store
from kanegen.program.registry import Functions, stores

RATES: Final = {f"jacobian_{name}": name for name in ARGUMENTS}
"""Functions for the derivatives of (q', u'), and what they are taken in."""

RESIDUALS: Final = {f"residuals_{name}": name for name in ("q", "u", "r")}
"""Functions for the derivatives of the residuals, and what they are taken in."""

OUTPUTS: Final = {f"outputs_{name}": name for name in ("q", "u", "r")}
"""Functions for the derivatives of the user's outputs, and what they are taken in."""

FUNCTIONS: Final = (*RATES, *RESIDUALS, *OUTPUTS)

NAMES: Final = {"q": "coordinates", "u": "speeds", "r": "inputs", "p": "parameters", "t": "time"}


class Jacobians:
    """Makes the functions :data:`FUNCTIONS` of a program."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions

    @cached_property
    def slopes(self) -> Sensitivities:
        return Sensitivities(self.functions.equations)

    def exists(self, name: str) -> bool:
        """Whether the function has any elements, and accelerations: redundant rows need a form that reveals ranks."""
        equations = self.functions.equations
        determined = equations.has_partition or self._rank_revealing
        if name in RESIDUALS and not (equations.positions.nodes or equations.velocities.nodes):
            return False
        if name in OUTPUTS and not any(output.nodes for output in equations.outputs.values()):
            return False
        if not determined and (name in RATES or (name in OUTPUTS and self._outputs_accelerate)):
            return False
        return bool(self.slopes.inputs(name.rpartition("_")[2]))

    @property
    def _rank_revealing(self) -> bool:
        return FORMS[self.functions.form].any_rank and self.functions.n_c > 0

    def add(self, name: str) -> Function:
        """The function of that name."""
        if name in RESIDUALS:
            return self.functions.once(name, lambda: self._of_residuals(name, RESIDUALS[name]))
        if name in OUTPUTS:
            return self.functions.once(name, lambda: self._of_outputs(name, OUTPUTS[name]))
        return self.functions.once(name, lambda: self._of_rates(name, RATES[name]))

    @property
    def _outputs_accelerate(self) -> bool:
        """Whether an output contains u'."""
        return any(not slope.is_zero for row in self.slopes.outputs_in_accelerations for slope in row)

    def _of_outputs(self, name: str, argument: str) -> Function:
        """The slopes of the outputs, u' among what they depend on."""
        f, found = self.functions, self.slopes.outputs(argument)
        summary = f"derivatives of the outputs in the {NAMES[argument]}"
        if not self._outputs_accelerate:
            return Function(name, found.shape, (Block("", stores("out", found.nodes)),), {}, summary)
        rates, m = self.add(f"jacobian_{argument}"), self._columns(argument)
        accelerations, udot = f.accelerations()
        changes = f.array("X", (f.n_q + f.n_u) * m)[f.n_q * m :]
        nodes = []
        for i, row in enumerate(self.slopes.outputs_in_accelerations):
            for k in range(m):
                through = [slope * changes[r * m + k] for r, slope in enumerate(row) if not slope.is_zero]
                nodes.append(f.graph.sum([found.nodes[i * m + k], *through]))
        held = dict(zip(f.equations.system.udot, udot, strict=True))
        block = Block("", stores("out", substitute(nodes, held)))
        arrays = {"a": f.n_q + f.n_u, "X": (f.n_q + f.n_u) * m}
        return Function(name, found.shape, (accelerations, Invoke(rates, "X"), block), arrays, summary)

    def _of_residuals(self, name: str, argument: str) -> Function:
        found = self.slopes.residuals(argument)
        summary = f"derivatives of the residuals in the {NAMES[argument]}"
        return Function(name, found.shape, (Block("", stores("out", found.nodes)),), {}, summary)

    def _of_rates(self, name: str, argument: str) -> Function:
        """u' by the reduced equations with the factorization shared by all columns, or for rows of any rank."""
        f = self.functions
        if self._rank_revealing:
            return replace(self._general(name, argument), internal=False)
        otherwise = f.add(self._general(f"{name}_general", argument)).name if f.n_c else None
        rows, steps, arrays = self._reduced(*self._loaded(argument), otherwise)
        block = Block(f"derivatives in the {NAMES[argument]}", self._outputs(argument, rows))
        arrays = {"D": (f.n_u + f.n_c) * self._columns(argument), **arrays}
        summary = f"derivatives of q' and u' in the {NAMES[argument]}"
        steps = (Invoke(self._balance(argument), "D"), *steps, block)
        return Function(name, self._shape(argument), steps, arrays, summary)

    def _columns(self, argument: str) -> int:
        return len(self.slopes.inputs(argument))

    def _shape(self, argument: str) -> tuple[int, ...]:
        rows = self.functions.n_q + self.functions.n_u
        return (rows,) if argument == "t" else (rows, self._columns(argument))

    def _outputs(self, argument: str, rows: forms.Matrix) -> tuple[Store, ...]:
        """The derivatives of q', then of u'."""
        return stores("out", [*self.slopes.rates(argument).nodes, *(x for row in rows for x in row)])

    def _loaded(self, argument: str) -> tuple[list[list[Node]], list[list[Node]]]:
        """The slopes of the momentum rows (n_u, m) and of the constraints (n_c, m) from the array ``D``."""
        rows = self.functions.loaded("D", self.slopes.balance(argument))
        return rows[: self.functions.n_u], rows[self.functions.n_u :]

    def _reduced(
        self, D1: forms.Matrix, D2: forms.Matrix, otherwise: str | None
    ) -> tuple[list[list[Node]], tuple[Step, ...], dict[str, int]]:
        """du' (n_u, m), the steps that prepare it and their arrays."""
        columns, steps, arrays = reduced_columns(self.functions, *self.slopes.reduced(D1, D2), otherwise)
        return [list(row) for row in zip(*columns, strict=True)], steps, arrays

    def _general(self, name: str, argument: str) -> Function:
        """u' and the multipliers together by LU with row pivoting: whatever speeds the constraints determine."""
        f = self.functions
        m = self._columns(argument)
        right = [-x for part in self._loaded(argument) for row in part for x in row]
        columns, steps, arrays = bordered_columns(f, right, m)
        rows = [list(row) for row in zip(*columns, strict=True)]
        steps = (Invoke(self._balance(argument), "D"), *steps, Block("", self._outputs(argument, rows)))
        arrays = {"D": (f.n_u + f.n_c) * m, **arrays}
        summary = f"derivatives of q' and u' in the {NAMES[argument]}, constraints and momentum together"
        return Function(name, self._shape(argument), steps, arrays, summary, internal=True)

    def _balance(self, argument: str) -> Function:
        """Slopes of ``Q u' - P - J^T lambda`` and ``J u' - b`` at the accelerations and multipliers of the state."""
        return self.functions.once(f"balance_{argument}", lambda: self._new_balance(argument))

    def _new_balance(self, argument: str) -> Function:
        f, found = self.functions, self.slopes.balance(argument)
        accelerations, udot = f.accelerations()
        replaced = dict(zip(f.equations.system.udot, udot, strict=True))
        steps: tuple[Step, ...] = (accelerations,)
        arrays = {"a": f.n_q + f.n_u}
        if f.n_c:
            force = substitute(self.slopes.unbalanced_force, replaced)
            arrays |= {MULTIPLIERS: f.n_c}
            if self._rank_revealing:
                steps += (Invoke(quantity(f, "multipliers"), MULTIPLIERS),)
            else:
                block = Block("constraint forces and J", (*stores("force", force), *stores("J", f.equations.J.nodes)))
                call = Call("multipliers", (f.n_u, f.n_c, "J", "force", "scratch", MULTIPLIERS))
                steps += (block, call)
                arrays |= {"force": f.n_u, "J": f.n_c * f.n_u, "scratch": multipliers_work(f.n_u, f.n_c)}
        steps += (Block("slopes", stores("out", substitute(found.nodes, replaced))),)
        summary = f"derivatives of Q u' - P - J^T lambda and J u' - b in the {NAMES[argument]}, u' and lambda fixed"
        return Function(f"balance_{argument}", found.shape, steps, arrays, summary, internal=True)
