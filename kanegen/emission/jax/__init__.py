"""The functions of a model as pure functions of JAX: a printer of programs."""

from kanegen.emission.jax.project import emit_jax as emit_jax
from kanegen.emission.jax.project import module_source as module_source
from kanegen.emission.jax.project import to_jax as to_jax
