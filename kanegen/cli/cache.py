"""``kanegen cache``: the files that are kept between builds."""

from __future__ import annotations

import time

import click
from rich.console import Console
from rich.table import Table


@click.group()
def cache() -> None:
    """Show or empty the cache of derived sources and compiled models.

    KANEGEN_CACHE_DIR names another folder than the user's cache folder.
    """


@cache.command("list")
def list_entries() -> None:
    """List the entries with their sizes."""
    from kanegen.backends.cython.cache import open_cache

    folder = open_cache()
    entries = folder.entries()
    table = Table(title=f"{folder.root}", title_justify="left", header_style="bold")
    table.add_column("kind")
    table.add_column("model")
    table.add_column("key")
    table.add_column("size", justify="right")
    table.add_column("modified")
    for entry in entries:
        stamp = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.modified))
        table.add_row(entry.kind, entry.name, entry.key[:12], size_text(entry.size), stamp)
    console = Console()
    console.print(table)
    console.print(f"{len(entries)} entries, {size_text(sum(entry.size for entry in entries))}", highlight=False)


@cache.command()
def clear() -> None:
    """Remove every entry; they are made again when they are needed."""
    from kanegen.backends.cython.cache import open_cache

    folder = open_cache()
    freed = folder.clear()
    Console().print(f"{size_text(freed)} freed in {folder.root}", highlight=False)


def size_text(size: int) -> str:
    """A number of bytes in kB or MB."""
    return f"{size / 1e6:.1f} MB" if size >= 1_000_000 else f"{size / 1e3:.1f} kB"
