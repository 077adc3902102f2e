"""Names of symbols from names of links and joints, which can be any text."""

from __future__ import annotations

import re


class Names:
    """Gives out names that are valid in Python and C, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, prefix: str, name: str, suffix: str = "") -> str:
        """``prefix_name_suffix`` with an underscore for what no symbol can contain; numbered if it is taken."""
        text = "_".join(re.sub(r"\W", "_", part, flags=re.ASCII) for part in (prefix, name, suffix) if part)
        found, count = text, 2
        while found in self._taken:
            found, count = f"{text}_{count}", count + 1
        self._taken.add(found)
        return found
