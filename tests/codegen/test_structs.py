"""The structs of C headers as Cython and ctypes see them, against the C compiler."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from ccompile import C_COMPILER

from kanegen.codegen.sources import runtime_headers
from kanegen.codegen.structs import Field, ctypes_struct, cython_structs, structs

HEADER = """
typedef struct kg_thing kg_thing;
struct kg_thing;
/* A comment with a { brace; and a semicolon. */
typedef struct {
  const double *x, *y; /* two pointers */
  long long count;
#ifdef KG_MORE
  ptrdiff_t next,
      last;
#endif
  int (*call)(void *context, kg_real t, const int *flags);
  const char *const *names;
  double values[3];
} kg_first;
typedef struct { struct { int n; } inner; } kg_nested;
typedef struct { kg_first first; kg_unknown other; double lambda; } kg_second;
"""


def test_fields_have_types_names_and_arguments() -> None:
    first = structs(HEADER)["kg_first"]
    assert first[:3] == (Field("const double *", "x"), Field("const double *", "y"), Field("long long", "count"))
    assert [field.name for field in first[3:5]] == ["next", "last"]
    assert first[5] == Field("int", "call", "(void *context, kg_real t, const int *flags)")
    assert first[6] == Field("const char *const *", "names")
    assert list(structs(HEADER)) == ["kg_first", "kg_second"]


def test_cython_gets_the_fields_whose_types_it_knows() -> None:
    text = cython_structs(HEADER, ["kg_first", "kg_second"])
    assert "        Py_ssize_t last\n" in text
    assert "        int (*call)(void *context, double t, const int *flags) noexcept nogil\n" in text
    assert text.endswith('    ctypedef struct kg_second:\n        kg_first first\n        double lambda_ "lambda"\n')
    assert "values" not in text


@pytest.mark.parametrize("name", ["kg_stepper_options", "kg_statistics", "kg_model", "kg_run"])
def test_places_are_those_of_the_compiler(name: str, tmp_path: Path) -> None:
    headers = runtime_headers()
    for file, text in headers.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    (header,) = (text for text in headers.values() if name in structs(text))
    ode = ctypes_struct(headers["kg_ode.h"], "kg_ode")
    struct = ctypes_struct(header, name, kg_ode=ode)
    prints = "".join(f'printf("%d ", (int)offsetof({name}, {field}));' for field, _ in struct._fields_)
    main = f'#include <stddef.h>\n#include <stdio.h>\n#include "kg_run.h"\nint main(void) {{ {prints} '
    main += f'printf("%d", (int)sizeof({name})); return 0; }}\n'
    (tmp_path / "main.c").write_text(main, encoding="utf-8")
    subprocess.run([C_COMPILER.command, "-std=c99", "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    offsets = [getattr(struct, field).offset for field, _ in struct._fields_]
    assert list(map(int, done.stdout.split())) == [*offsets, ctypes.sizeof(struct)]
