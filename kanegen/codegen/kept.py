"""What the generator computes from kanegen's own files alone; a back end keeps it for later processes."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {}
"""Rendered headers by their names, and the code of templates, in base64, by the keys of Jinja."""
