"""Shared by all tests: builds go to a cache folder of this session, never to the user's own."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# For workers and subprocesses too, and before NumPy is imported: parallel sessions have the processors already, and
# threads of BLAS that wait for them take up to a hundred times as long as one, even for a singular value decomposition
# of a 3 by 3 matrix.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# SymPy makes millions of objects, few of them in cycles: looking for these rarely saves 3 % of the time.
gc.set_threshold(20_000, 20, 20)

# The same examples in every run, so that a change is judged by what it changed; HYPOTHESIS_PROFILE=explore looks for
# new ones.
settings.register_profile("steady", derandomize=True, deadline=None)  # a deadline depends on the machine
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache folder of this session, in ``KANEGEN_CACHE_DIR`` so that subprocesses share it; without a limit.

    Parallel workers share it too: a system is compiled once per session, whoever needs it first. Sessions with the same
    folder ``KANEGEN_TEST_CACHE`` share that one. Models are compiled with little optimization, in half the time, and
    in one piece; the bits of their results are the same (tests/codegen/test_optimization.py and test_pieces.py). See
    also ``quick_builds``.
    """
    base = tmp_path_factory.getbasetemp()
    own = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kanegen-cache"
    folder = Path(os.environ.get("KANEGEN_TEST_CACHE", own))
    folder.mkdir(mode=0o700, exist_ok=True)
    variables = {
        **{"KANEGEN_CACHE_DIR": str(folder), "KANEGEN_CACHE_SIZE": "inf"},
        **{"KANEGEN_KERNEL_FLAGS": "-Og", "KANEGEN_PROCESSORS": "1"},
    }
    previous = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    yield folder
    for name, value in previous.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


TESTS = Path(__file__).parent

QUICK = tuple(TESTS / name for name in ("derivation", "program", "solve", "verification"))
"""Folders whose tests look at what equations and runs give, and not at C code, compilers or what users start."""

USUAL = TESTS / "solve" / "gradients"
"""There the states of compiled derivatives are compared with those of the kernel."""


@pytest.fixture(scope="module", autouse=True)
def quick_builds(request: pytest.FixtureRequest, session_cache: Path) -> Iterator[None]:
    """Models of the folders ``QUICK`` are compiled by tcc where it is installed, in a twentieth of the time.

    tests/backends/test_quick.py compares it with the usual compiler, for all examples.
    """
    folders = request.path.parents
    with pytest.MonkeyPatch.context() as patch:
        if USUAL not in folders and any(folder in folders for folder in QUICK):
            patch.setenv("KANEGEN_QUICK", "1")
        yield


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the shell started the tests in the background, deaf to it.

    Python ignores exceptions in callbacks of the garbage collector, of which Hypothesis has one.
    """
    previous, callbacks = signal.signal(signal.SIGINT, signal.default_int_handler), gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks
    signal.signal(signal.SIGINT, previous)
