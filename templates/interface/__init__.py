"""C99 runtime headers, copied verbatim into every generated project."""
