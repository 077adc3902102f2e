"""The back end ``"interpreted"``: the program of a model evaluated in Python, for machines without a C compiler.

It is some thousand times slower than compiled code, and shares none of it: a reference. It integrates by SciPy
(``dopri5`` as ``RK45``, ``dop853`` as ``DOP853``) and has functions of the model only: no contacts, events, control
loops, projections, impulses or inverse dynamics.
"""

from __future__ import annotations

from typing import Any, cast

from kanegen.backends.cython import c_sources
from kanegen.backends.interpreted.evaluator import Interpreted
from kanegen.backends.protocol import Evaluator, Generated, Request
from kanegen.codegen.description import Description
from kanegen.codegen.sources import Sources
from kanegen.errors import BuildError


def build_model(request: Request, options: Any = None) -> InterpretedModel:
    """Derive a model and wrap its program. ``options`` (of a compiler) are not used.

    Raises
    ------
    BuildError
        For models with contacts or events.
    """
    program = request.generated.program
    names = [*(contact.name for contact in program.contacts), *(event.name for event in program.events)]
    if names:
        raise BuildError(
            f"backend 'interpreted' supports no contacts and events, and {program.name!r} has {', '.join(names)}: use "
            "backend='cython'"
        )
    return InterpretedModel(request.digest, request.generated)


class InterpretedModel:
    """A model that was built by this back end (:class:`kanegen.backends.protocol.Build`)."""

    path = None

    def __init__(self, digest: str, generated: Generated) -> None:
        self.digest = digest
        self._generated = generated
        self.module = cast(Evaluator, Interpreted(generated.program, digest))

    def __reduce__(self) -> tuple[Any, ...]:
        return InterpretedModel, (self.digest, self._generated)

    @property
    def sources(self) -> Sources:
        """The C sources of the model, which this back end does not compile."""
        return c_sources(self._generated, self.digest)

    @property
    def description(self) -> Description:
        """What a solver knows about the model."""
        return self._generated.description
