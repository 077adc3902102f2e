"""Self-checks without reference results: :func:`verify` compares Kane's equations with other principles."""

from kanegen.verification.report import Check as Check
from kanegen.verification.report import Report as Report
from kanegen.verification.run import verify as verify
