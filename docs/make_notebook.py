"""Executes the notebook docs/tour.ipynb and stores its outputs.

``python docs/make_notebook.py`` writes the file itself, ``python docs/make_notebook.py FILE`` another one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parent / "tour.ipynb"


def main(target: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # Times of execution would change the file in every run.
    NotebookClient(notebook, kernel_name="python3", record_timing=False, timeout=120).execute()
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else NOTEBOOK)
