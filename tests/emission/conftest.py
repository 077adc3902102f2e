"""Emitted projects that several tests share."""

import pytest
from emitted import Projects


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Projects:
    """The projects of examples."""
    return Projects(tmp_path_factory.mktemp("emitted"))
