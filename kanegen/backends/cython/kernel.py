"""The compilation of a kernel, in several C files at the same time."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

from kanegen.backends.cython.job import Job
from kanegen.backends.cython.processes import Submit, processors
from kanegen.backends.cython.toolchain import compile_object, link, link_command, make
from kanegen.codegen.kernel import program_of
from kanegen.codegen.pieces import Pieces, pieces
from kanegen.codegen.sources import Sources
from kanegen.writing import write_files


def compile_kernel(job: Job, sources: Sources, work: Path, target: Path, submit: Submit) -> None:
    """Compile the kernel, which is in the folder ``work``, to a library there. Raises `BuildError`."""
    if job.quick is not None:
        flags = (*job.options.common, *job.options.kernel, f"-I{work}")
        parts = [*flags, str(work / sources.kernel)]
        make(job.quick, link_command(job.quick, job.options, parts, str(target)), target)
        return
    objects = _compile_objects(job, sources, work, submit)
    link(job.toolchain, job.options, list(map(str, objects)), target)
    for file in objects:
        file.unlink()


def _compile_objects(job: Job, sources: Sources, work: Path, submit: Submit) -> list[Path]:
    """Compile the C files of the kernel at the same time; returns the object files."""
    divided, files = _pieces(sources), [work / sources.kernel]
    flags = (*job.options.common, *_flags(job, divided), "-fvisibility=default")
    if divided.texts:
        files = [work / f"piece_{k}.c" for k in range(len(divided.texts))]
        write_files({file.name: piece for file, piece in zip(files, divided.texts, strict=True)}, work)
    objects = [file.with_suffix(".o") for file in files]

    def start(file: Path, target: Path) -> Future[None]:
        return submit(compile_object, job.toolchain, flags, file, target, [str(work)])

    others = [start(*pair) for pair in list(zip(files, objects, strict=True))[1:]]
    compile_object(job.toolchain, flags, files[0], objects[0], [str(work)])
    for compilation in others:
        compilation.result()
    for file in set(files) - {work / sources.kernel}:
        file.unlink()
    return objects


def _flags(job: Job, divided: Pieces) -> tuple[str, ...]:
    if job.options.quick:
        return job.options.unoptimized
    return job.options.of_long_kernels(gcc=job.gcc) if divided.has_long_functions else job.options.kernel


def _pieces(sources: Sources) -> Pieces:
    """The kernel in several files. One that was not printed from a program, or changed since, is compiled as one."""
    program = program_of(sources)
    return pieces(program, sources.digest, processors()) if program else Pieces((), has_long_functions=False)
