"""The commands of ``kanegen``, each in a file of its name or with those that it resembles."""

from kanegen.cli.main import main as main
