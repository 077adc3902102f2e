"""Shared by the tests of contacts in C."""

from __future__ import annotations

import pytest
from contact_rows import Runtime, runtime_of_session


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    """The compiled contacts, with a frozen configuration."""
    return runtime_of_session()
