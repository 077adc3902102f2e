"""What runs in a worker: one chunk of a sweep."""

from __future__ import annotations

import os
import socket
from typing import NamedTuple

from kanegen.sweeps.job import Job, ReceivedJob, SourcesMissingError
from kanegen.sweeps.tasks import Computed, Piece, failure


class NeedsSources(NamedTuple):
    """The answer of a worker that does not know the sources of the model."""


class Refused(NamedTuple):
    """The answer of a worker that cannot build or load the model, or compute any member; ``reason`` names the host."""

    reason: str


def run_chunk(job: Job | ReceivedJob, piece: Piece, sources: bytes | None = None) -> Computed | NeedsSources | Refused:
    """Compute the members of a chunk. Failures of members are in the results; all others are answers, too."""
    try:
        opened = job.open(sources)
        return opened.task.run(opened.solver, piece)
    except SourcesMissingError:
        return NeedsSources()
    except Exception as error:  # of a class that the other side may not have, with a cause that it cannot see
        return Refused(f"host {socket.gethostname()}, process {os.getpid()}: {failure(error)}")
