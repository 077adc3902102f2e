"""Hidden inputs: values of the array ``r`` behind the user's inputs, which the runtime fills."""

from __future__ import annotations

from kanegen.model import Model


def hidden_names(model: Model) -> tuple[str, ...]:
    """Names of the hidden inputs, in their order behind the inputs of the model."""
    return ()
