"""Self-checks that need no reference: :func:`verify` compares Kane's equations with other principles of mechanics."""

from kanegen.verify.report import Check as Check
from kanegen.verify.report import Report as Report
from kanegen.verify.run import verify as verify
