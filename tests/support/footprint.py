"""What an emitted project takes of a microcontroller: code, constants, static data, and a bound for the stack.

The compiler writes the calls and the frame of each function (``-fcallgraph-info=su``); the bound is the largest sum of
frames on a path of calls. Functions of the C library are not in it: they are listed by name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from boards import RIG, Board, run_command

_NODE = re.compile(r'node: \{ title: "(?P<title>[^"]*)" label: "(?P<label>[^"]*)"')
_EDGE = re.compile(r'edge: \{ sourcename: "(?P<source>[^"]*)" targetname: "(?P<target>[^"]*)"')
_FRAME = re.compile(r"\\n(\d+) bytes \((\w+)\)")
_INDIRECT = "__indirect_call"


@dataclass(frozen=True)
class Calls:
    """The calls and the frames in bytes of the functions of one C file; those of other files are ``external``."""

    frames: Mapping[str, int]
    targets: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, text: str) -> Calls:
        """From a file that ``-fcallgraph-info=su`` wrote."""
        frames = {}
        for match in _NODE.finditer(text):
            if frame := _FRAME.search(match["label"]):
                assert frame[2] == "static", f"{match['title']} has a frame of unknown size"
                frames[match["title"]] = int(frame[1])
        targets = defaultdict(set)
        for match in _EDGE.finditer(text):
            targets[match["source"]].add(match["target"])
        return cls(frames, {name: frozenset(called) for name, called in targets.items()})

    def deepest(self, function: str) -> int:
        """Bytes of the largest sum of frames of a call of ``function``."""

        @cache
        def depth(name: str) -> int:
            return self.frames.get(name, 0) + max((depth(called) for called in self._called(name)), default=0)

        return depth(function)  # a recursion would not end: RecursionError

    def external(self, function: str) -> set[str]:
        """The functions of other files that a call of ``function`` can reach."""
        seen: set[str] = set()
        waiting = [function]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += self._called(name)
        return {name for name in seen if name not in self.frames}

    def _called(self, function: str) -> set[str]:
        """A call by address can reach every static function of the file from which ``function`` is not reached."""
        called = set(self.targets.get(function, ()))
        if _INDIRECT in called:
            called |= {name for name in self.frames if ":" in name} - self._callers(function)
        return called - {_INDIRECT}

    def _callers(self, function: str) -> set[str]:
        """``function`` and the functions that reach it by calls by name."""
        found: set[str] = set()
        waiting = {function}
        while waiting:
            found |= waiting
            waiting = {name for name, called in self.targets.items() if called & waiting} - found
        return found


@dataclass(frozen=True)
class Footprint:
    """Bytes: ``flash`` of code and constants, ``ram`` of static data; ``calls`` of the project's C file."""

    flash: int
    ram: int
    calls: Calls


def footprint(board: Board, compiled: Path, entries: tuple[str, ...]) -> Footprint:
    """What the functions ``entries`` of an object file need, with the functions of the C library that they call.

    The file is linked with nothing but the C library, without start-up code; what ``entries`` do not need is left out.
    """
    target = compiled.with_suffix(".elf")
    roots = [f"-Wl,-u,{name}" for name in entries]
    script = ("-nostartfiles", f"-T{RIG / board.script}", f"-Wl,-e,{entries[0]}", "-Wl,--gc-sections")
    run_command([board.compiler.command, *board.target, *script, *roots, str(compiled), "-lm", "-o", str(target)])
    sizes = _sections(board, target)
    stored = sizes["data"] + sizes["text"] + sizes["ARM.exidx"]
    calls = Calls.read(compiled.with_suffix(".ci").read_text(encoding="utf-8"))
    return Footprint(stored, sizes["data"] + sizes["bss"], calls)


def _sections(board: Board, program: Path) -> Mapping[str, int]:
    listing = run_command([board.compiler.command.replace("-gcc", "-size"), "-A", str(program)])
    found = re.findall(r"^\.(text|data|bss|ARM\.exidx)\s+(\d+)", listing, re.MULTILINE)
    return defaultdict(int, {name: int(size) for name, size in found})
