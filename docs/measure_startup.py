"""The waiting times of docs/benchmark.md (start-up), which `kanegen bench` measures among other numbers."""

from pathlib import Path

from kanegen.cli.bench.startup import measure_startup

EXAMPLES = Path(__file__).parents[1] / "build_examples"


def main() -> None:
    """Print the least times of ten processes each."""
    times = measure_startup(EXAMPLES / "rolling_disk.py", EXAMPLES / "slider_crank.py", 10)
    module = "installed" if times.is_installed else "compiled with the first model"
    print(f"first model, a whole process (s)  {times.first:.2f}  (Python module: {module})")
    print(f"the next model (s)                {times.following:.3f}")
    print(f"a model from the cache (ms)       {1e3 * times.cached:.1f}")
    for name, seconds in times.imports.items():
        print(f"import {name:<8} (ms)              {1e3 * seconds:.0f}")


if __name__ == "__main__":
    main()
