"""The pytest plugin: compares every model a SymPy test forms, and ends with a table. Run it by ``make test-sympy``."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from dataclasses import asdict
from typing import Any

import pytest

from sympy_suite import capture, expected, summary
from sympy_suite.compare import Outcome, compare

NAME = "kanegen name"
KEY = "kanegen outcomes"
ALONE = "kanegen failed alone"
SLOW = ("test_bicycle",)
"""Tests that take a minute are started first, so that they do not end the run alone."""

present: list[Outcome] = []
"""The outcomes of the test that runs."""
wanted: list[int] = []
"""How many models it forms, if that is known."""
outcomes: dict[str, list[Outcome]] = {}
ran: set[str] = set()
failed_alone: list[str] = []


class EnoughError(BaseException):
    """Ends a test of SymPy that has formed all its models; what it does with them takes longer and is SymPy's own."""


def see(method: Any, seconds: float) -> None:
    """Compare a model; the last one ends its test."""
    present.append(compare(method, seconds))
    if [len(present)] == wanted:
        raise EnoughError


def pytest_configure(config: pytest.Config) -> None:
    """Worker processes inherit the cache folder of this run."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.kanegen_cache = os.environ["KANEGEN_CACHE_DIR"] = tempfile.mkdtemp(prefix="kanegen-sympy-")
    capture.install(see)


def pytest_unconfigure(config: pytest.Config) -> None:
    capture.uninstall()
    if hasattr(config, "kanegen_cache"):
        shutil.rmtree(config.kanegen_cache, ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the SymPy whose tests were counted, only those that form models run."""
    if expected.is_counted():
        others = [item for item in items if name_of(item) not in expected.CAPTURED]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if name_of(item) in expected.CAPTURED]
    items.sort(key=lambda item: item.name not in SLOW)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    present.clear()
    has_parameters = "[" in item.name  # the table has the sum of all
    wanted[:] = [expected.CAPTURED[name_of(item)]] if expected.is_counted() and not has_parameters else []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run SymPy's test, then judge its models. A test that fails by itself is only reported."""
    failure = ""
    try:
        yield
    except EnoughError:
        pass
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    item.user_properties.append((NAME, name_of(item)))
    item.user_properties.append((KEY, [asdict(outcome) for outcome in present]))
    if failure:
        item.user_properties.append((ALONE, failure))
    problems = judged(name_of(item), present)
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def judged(test: str, models: list[Outcome]) -> list[str]:
    """What is wrong with the outcomes of a test: disagreement, errors, and refusals other than the expected ones."""
    reason = expected.REFUSALS.get(test)
    problems = []
    for k, outcome in enumerate(models):
        where = f"model {k} (n_q n_u n_d aux = {outcome.sizes})"
        if outcome.error:
            problems.append(f"{where} failed:\n{outcome.error}")
        elif outcome.refusal and (reason is None or reason not in outcome.refusal):
            problems.append(f"{where} is refused for a reason that is not expected: {outcome.refusal}")
        elif not outcome.refusal and reason is not None:
            problems.append(f"{where} is no longer refused: {reason!r} must leave expected.REFUSALS")
        elif outcome.deviation is not None and not outcome.agrees:
            problems.append(f"{where} disagrees with SymPy's equations by {outcome.deviation:.2e} of their terms")
    return problems


def name_of(item: pytest.Item) -> str:
    """File, class and function of a test, without folders and parameters."""
    names = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return "::".join([item.path.name, *names, item.name.split("[")[0]])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Gather what the reports of this or other processes bring."""
    if report.when != "call" or report.skipped:
        return
    found = dict(report.user_properties)
    name = found[NAME]
    ran.add(name)
    if found[KEY]:
        outcomes.setdefault(name, []).extend(Outcome(**item) for item in found[KEY])
    if ALONE in found:
        failed_alone.append(f"{name}: {found[ALONE]}")


def problems_of_run(config: pytest.Config) -> list[str]:
    captured = {test: len(models) for test, models in outcomes.items()}
    return expected.missing(captured, ran, complete=not config.option.keyword)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ and problems_of_run(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.section("models of SymPy's tests against kanegen")
    for line in summary.table(outcomes):
        terminalreporter.write_line(line)
    for line in failed_alone:
        terminalreporter.write_line(f"failed by itself, whatever kanegen does: {line}")
    for line in problems_of_run(config):
        terminalreporter.write_line(line, red=True)
    terminalreporter.write_line(summary.counts(outcomes), bold=True)
