"""The command line: ``kanegen build|run|emit|show|verify|bench FILE`` and ``kanegen cache list|clear``."""

from kanegen.cli.main import main as main
