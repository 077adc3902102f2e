"""What releases are made from agrees with pyproject.toml, and the check of wheels passes."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

from checkout import ROOT, environment

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = (ROOT / "release" / "conda" / "recipe.yaml").read_text(encoding="utf-8")


def of_recipe(section: str) -> set[str]:
    """The requirements of a section of the recipe, spelled as pip does."""
    (text,) = re.findall(rf"^  {section}:\n((?:    .*\n)+)", RECIPE, re.MULTILINE)
    return {re.sub(r" (?=>=)", "", item) for item in re.findall(r"^    - (.+)$", text, re.MULTILINE)}


def test_the_recipe_for_conda_has_the_requirements_of_the_package() -> None:
    assert of_recipe("run") - {"c-compiler"} == {*PROJECT["project"]["dependencies"], "python>=3.11"}
    assert of_recipe("host") == {*PROJECT["build-system"]["requires"], "python>=3.11", "pip"}
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    for file in PROJECT["project"]["license-files"]:
        assert f"    - {file}\n" in RECIPE
        assert (ROOT / file).is_file()


def test_wheels_are_built_for_the_versions_that_are_declared() -> None:
    declared = {
        version.replace(".", "")
        for version in re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    }
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert set(re.findall(r"cp(\d+)-", wheels["build"])) == declared
    assert (ROOT / wheels["test-command"].partition("{project}/")[2]).is_file()
    assert all(extra in PROJECT["project"]["optional-dependencies"] for extra in wheels["test-extras"])


def test_the_check_of_wheels_passes_here() -> None:
    """In this environment, with the compiler that is found, in place of an empty one."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "release")!r})
import check_wheel
exec(check_wheel.MODEL.replace("assert installed_wrapper() is not None", "assert True"), {{}})
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
