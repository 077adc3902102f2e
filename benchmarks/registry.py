"""The peers by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Final


@dataclass(frozen=True)
class Peer:
    """A program to compare with.

        ``module`` is the module of this folder with the functions ``program(problem)`` and ``first(problem)``, and
        ``batch(problem, count)`` if the peer has batches, ``batch_avx2`` if it can do without AVX-512, and
    ``batch_lagrangian`` if it derives equations from energies. ``gradients(problem)`` differentiates
        motions; a peer may have that only. ``imports`` is the module of the package that it needs,
        and ``distribution`` the name with which pip installs that.
    """

    name: str
    module: str
    imports: str
    distribution: str

    def load(self) -> ModuleType:
        """The module of this folder. Raises `ImportError` if the package is not installed."""
        import_module(self.imports)
        return import_module(f"{__package__}.{self.module}")

    @property
    def version(self) -> str:
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return "unknown version"


OWN: Final = Peer("kanegen", "own", "kanegen", "kanegen")

PEERS: Final[Mapping[str, Peer]] = {
    peer.name: peer
    for peer in (
        Peer("heyoka", "heyoka_peer", "heyoka", "heyoka"),
        Peer("JiTCODE", "jitcode_peer", "jitcode", "jitcode"),
        Peer("CasADi", "casadi_peer", "casadi", "casadi"),
        Peer("diffrax", "diffrax_peer", "diffrax", "diffrax"),
        Peer("PyDy", "pydy_peer", "pydy.codegen", "pydy"),
        Peer("Pinocchio", "pinocchio_peer", "pinocchio", "pin"),
        Peer("MuJoCo", "mujoco_peer", "mujoco", "mujoco"),
    )
}


def installed(names: tuple[str, ...]) -> tuple[dict[str, ModuleType], dict[str, str]]:
    """The modules of kanegen and of the peers of these names that can be imported, and why others cannot."""
    modules = {OWN.name: OWN.load()}
    missing = {}
    for name in names:
        try:
            modules[name] = PEERS[name].load()
        except ImportError as error:
            missing[name] = f"pip install {PEERS[name].distribution} ({error})"
        except Exception as error:  # a package that is broken must not end the comparison
            missing[name] = f"cannot be imported: {type(error).__name__}: {error}"
    return modules, missing
