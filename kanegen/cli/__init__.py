"""The commands of ``kanegen``, each in a file of its name or of a similar command."""

from kanegen.cli.main import main as main
