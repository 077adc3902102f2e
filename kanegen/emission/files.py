"""The texts of a standalone project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kanegen.backends.protocol import Generated
from kanegen.codegen.description import Description
from kanegen.codegen.kernel import kernel_context
from kanegen.codegen.methods.table import EMITTED, IMPLICIT
from kanegen.codegen.sources import Features, include_closure, render, runtime_headers, wrapper_files
from kanegen.emission.amalgamation import amalgamated
from kanegen.emission.example import Example
from kanegen.emission.interface import STATUSES, Interface, interface_of
from kanegen.emission.laws import context_of_laws
from kanegen.emission.options import EmitOptions
from kanegen.emission.programs import EXAMPLE, OF_STEPS, PYTHON, programs_of
from kanegen.emission.ranges import require_range
from kanegen.emission.step import Step, step_of
from kanegen.emission.words import equations_in_words
from kanegen.program.passes.count import operation_count
from kanegen.units import Unit

PACKAGE: Final = {
    "pyproject.toml": "project/pyproject.toml.jinja",
    "setup.py": "project/setup.py.jinja",
    "MANIFEST.in": "project/manifest.in.jinja",
}
"""Files that build the Python package, and their templates."""

BENCH_RESTART: Final = 10000
"""Steps after which the measured motion starts again, so that it does not leave the range of the model."""

RUNTIME: Final = "runtime/"
"""The folder of the headers of the runtime in a project."""

EXAMPLES: Final = "examples/"
"""The folder of its programs."""

EXAMPLE_METHOD: Final = "rk4"
"""The method of the example program."""


@dataclass(frozen=True, eq=False)
class ProjectFiles:
    """A project: the generated model, its options, and what the templates print.

    ``notes``: sentences on what the step does not do. ``programs``: keys of :data:`.PROGRAMS`.
    """

    generated: Generated
    options: EmitOptions
    digest: str
    example: Example
    ui: Interface
    step: Step | None
    notes: tuple[str, ...]
    kernel: Mapping[str, Any]
    features: Features
    programs: frozenset[str]

    @classmethod
    def of(
        cls,
        generated: Generated,
        options: EmitOptions,
        digest: str,
        example: Example,
        known: Mapping[str, float],
        units: Mapping[str, Unit],
    ) -> ProjectFiles:
        """The project of a generated model; ``known``: values by name, ``units`` by name."""
        kernel: Mapping[str, Any] = kernel_context(generated.program, digest=digest, options_text=generated.options)
        gains = example.stabilization.gains
        description = generated.description
        ui = interface_of(generated.program, description, kernel["entries"], known, units, example.start_time, gains)
        require_range(generated.program, known, gains)
        step, notes = step_of(options, example.stabilization, ui, description)
        asked = () if options.single_header else options.programs
        programs = programs_of(asked, has_step=step is not None, is_float=options.is_float, notes=notes)
        features = emitted_features(description, step, with_python=PYTHON in programs)
        return cls(generated, options, digest, example, ui, step, notes, kernel, features, programs)

    @property
    def stem(self) -> str:
        """The name of the project."""
        return self.options.name

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return f"{self.stem}_model"

    @cached_property
    def context(self) -> dict[str, Any]:
        """The variables of the templates."""
        defines = [f"kg_get_model {self.stem}_get_model"]
        return {
            **self.kernel,
            **self.example.context(),
            "stem": self.stem,
            "package": self.package,
            "distribution": self.package.replace("_", "-").lower(),
            "has": self.features,
            "ui": self.ui,
            "step": self.step,
            "statuses": STATUSES,
            "cost": self.cost(),
            "law_memory": self._law_memory,
            "default_parameters": _values(self.ui.parameters),
            "default_inputs": _values(self.ui.inputs, missing=0.0),
            "defines": [*self.scalar_defines, *defines],
            "headers": [f"{self.stem}.h", f"{self.stem}_table.h", *self._runtime_includes()],
            "runtime_folder": RUNTIME,
            "programs": self.programs,
            "target_triple": self.options.target_triple,
            "is_float": self.options.is_float,
            "words": equations_in_words(self.generated.description),
            "context_bytes": self.context_bytes,
        }

    @property
    def context_bytes(self) -> int:
        """The size of a context, on machines with a 32-bit int."""
        ui, step, clocks = self.ui, self.step, self._laws["law_clocks"]
        inputs = max(len(ui.inputs), 1) + len(ui.rows) + ui.n_free
        reals = 1 + ui.n_y + inputs + max(ui.n_prepared, 1) + max(ui.n_work, 1)
        reals += step.context_values if step else 0
        reals += self._law_memory + (1 if clocks else 0)
        size = reals * (4 if self.options.is_float else 8)
        return -(-size // 8) * 8 + 16 * len(clocks) if clocks else size

    @cached_property
    def _laws(self) -> Mapping[str, Any]:
        return context_of_laws(self.example.laws)

    @property
    def _law_memory(self) -> int:
        """Length of the values of the feedback laws: scratch, those that act, and the samples that are kept."""
        return len(self._laws["laws"]) * (2 + int(self._laws["waiting"]))

    @property
    def scalar_defines(self) -> list[str]:
        """The macros that select the scalar type and its functions."""
        return [
            *(["KG_FLOAT"] if self.options.is_float else []),
            *(["KG_LIBM_MATH"] if self.options.libm_math else []),
        ]

    def _runtime_includes(self) -> list[str]:
        of_kernel = list(self.kernel["headers"])[1:]
        laws = ["kg_feedback.h"] if self.example.laws else []
        return [RUNTIME + name for name in dict.fromkeys([*of_kernel, "kg_codes.h", *laws, *self._step_includes()])]

    def _step_includes(self) -> list[str]:
        contacts = ["kg_moreau.h"] if self.step and self.step.contacts else []
        return ["kg_fixed_step.h", *contacts] if self.step else []

    def cost(self) -> list[str]:
        """Sentences on the operations of a step."""
        if self.step is None:
            return [f"One evaluation of the right-hand side takes {self.ui.rhs.operations} operations.", *self.notes]
        step, rhs = self.step, self.ui.rhs
        evaluations = f"{step.method.evaluations} right-hand sides of {rhs.operations} operations"
        lines = [
            f"A step ({step.title}) takes {step.operations} operations, in every state: "
            + (step.contacts.cost if step.contacts else evaluations)
            + (f", feedback laws with {step.law_operations} operations" if step.law_operations else "")
            + (f", {step.projections} Newton iterations of {step.project.operations}" if step.project else "")
            + ", and sums of their results. Each C operation and each call of a mathematical function counts 1; tests "
            "that numbers are finite and the time are not included."
        ]
        if self.rare_operations:
            lines.append(
                "Worst-case path: where the model's own choice of dependent speeds is singular, a step "
                f"chooses others and takes {self.rare_operations} operations more in each evaluation; a "
                "project of form range_space has no such path."
            )
        return [*lines, *self.notes]

    @cached_property
    def rare_operations(self) -> int:
        """Operations of the path that a step takes where the dependent speeds of the model are singular; or 0."""
        program = self.generated.program
        evaluated = "contacts" if self.step and self.step.contacts else self.ui.rhs.name
        callees = [f for f in program.callees(program.function(evaluated)) if f.internal]
        return max((operation_count(f, program.constants) for f in callees), default=0)

    def texts(self) -> dict[str, str]:
        """The files by relative path, but the self-test."""
        code = self.code()
        if self.options.single_header:
            return {f"{self.stem}.h": amalgamated(self.stem, code)}
        context = self.context
        files = {**code, f"{self.stem}.hpp": render("interface/model.hpp.jinja", **context), **self._examples()}
        available = runtime_headers(self.features.methods)
        headers = include_closure(files, available)
        context = {**context, "runtime": sorted(headers)}
        files["Makefile"] = render("interface/makefile.jinja", **context)
        files["stack.awk"] = render("interface/stack.awk")
        files["README.md"] = render("project/readme.md.jinja", **context)
        if PYTHON in self.programs:
            files |= self._python(context)
            headers |= include_closure(wrapper_files(self.features), available)
        return {**files, **{RUNTIME + name: text for name, text in headers.items()}}

    def _examples(self) -> dict[str, str]:
        """The example program, the demo in real time and the measurement of the times of steps."""
        context = {**self.context, "restart": BENCH_RESTART}
        templates = {EXAMPLE: "project/example.c.jinja", **OF_STEPS}
        return {
            f"{EXAMPLES}{self.stem}_{name}.c": render(template, **context)
            for name, template in templates.items()
            if name in self.programs
        }

    def code(self) -> dict[str, str]:
        """The typed interface and its implementation."""
        context = self.context
        kernel = render("kernel/kernel.c.jinja", **context)
        return {
            f"{self.stem}.h": render("interface/model.h.jinja", **context),
            f"{self.stem}_table.h": render("kernel/kernel.h.jinja", **context),
            f"{self.stem}.c": render("interface/model.c.jinja", **context, kernel=kernel),
        }

    def _python(self, context: Mapping[str, Any]) -> dict[str, str]:
        """The Python package without the headers that it includes."""
        return {
            **{name: render(template, **context) for name, template in PACKAGE.items()},
            **{f"{self.package}/{name}": text for name, text in wrapper_files(self.features).items()},
            f"{self.package}/__init__.py": render("project/init.py.jinja", **context),
        }


def _values(variables: Any, missing: float = float("nan")) -> list[float]:
    return [missing if variable.value is None else variable.value for variable in variables]


def emitted_features(description: Description, step: Step | None, *, with_python: bool) -> Features:
    """The features of a standalone project: all for which the model has the functions, and the methods that it uses."""
    available = set(description.functions)
    events = bool({"gaps", "events"} & available)
    # In models with contacts or events, difference quotients replace Jacobians that were not compiled.
    implicit = events or "jacobian_q" in available
    used = {EXAMPLE_METHOD, step.name if step else EXAMPLE_METHOD}
    return Features(
        events=events,
        impulses="impulses" in available,
        inverse=bool(description.path_controls)
        and {"control_forces", "kinematics", description.mass, "P"} <= available,
        methods=tuple(name for name in EMITTED if name in used or (with_python and (implicit or name not in IMPLICIT))),
    )
