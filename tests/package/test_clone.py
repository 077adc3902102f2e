"""Programs in the folder above a clone, where Python finds the clone's folder under the name of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from checkout import ROOT


def test_the_folder_above_a_clone_imports_the_package(tmp_path: Path) -> None:
    """It was an empty namespace package: "module 'kanegen' has no attribute 'Model'"."""
    (tmp_path / "kanegen").symlink_to(ROOT, target_is_directory=True)
    program = (
        "import pickle, kanegen as kg, kanegen.model.model\n"
        "assert kg.Model is kanegen.model.model.Model\n"
        "assert pickle.loads(pickle.dumps(kg.Outcome.FINISHED)) is kg.Outcome.FINISHED\n"
        "print(kg.__file__, kg.Spline([0, 1], [0, 1]).python(0.5))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(ROOT / "kanegen" / "__init__.py"), "0.5"]
