"""Solvers as functions of other programs; each module needs a package that kanegen does not install."""

from kanegen.interop import jax as jax
from kanegen.interop import torch as torch
