"""The tests on pages for users work as they are printed: the README's, and each recipe."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testing.suites import PLUGIN, REPOSITORY, environment

pytestmark = pytest.mark.process

RECIPES = "docs/recipes.md"
README_SECTION = "A broker in your tests"


def sections(page: str) -> dict[str, str]:
    """The second-level sections of a page that have Python code, by heading: all their blocks as one program."""
    parts = re.split(r"^## (.*)\n", (REPOSITORY / page).read_text(), flags=re.MULTILINE)[1:]
    programs = {
        heading: "\n\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return {heading: program for heading, program in programs.items() if program}


def run(program: str, directory: Path) -> None:
    """Run a file of tests in a directory that has nothing else: every test in it passes, and nothing warns."""
    tests = len(re.findall(r"^ *(?:async )?def test_", program, re.MULTILINE))
    assert tests > 0
    (directory / "test_page.py").write_text(program)
    options = ["-q", "-W", "error", "-p", PLUGIN, "-p", "no:cacheprovider", "--rootdir", str(directory)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-o", "asyncio_default_fixture_loop_scope=function", str(directory)],
        cwd=directory, env=environment(), capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert re.search(rf"^{tests} passed in ", done.stdout, re.MULTILINE), done.stdout


def test_the_tests_of_the_readme_work_from_any_directory(tmp_path: Path) -> None:
    run(sections("README.md")[README_SECTION], tmp_path)


@pytest.mark.parametrize("recipe", sections(RECIPES))
def test_a_recipe_works(tmp_path: Path, recipe: str) -> None:
    run(sections(RECIPES)[recipe], tmp_path)


def test_the_table_of_recipes_has_each_of_them() -> None:
    listed = re.findall(r"^\| \[(.*?)\]\(#", (REPOSITORY / RECIPES).read_text(), re.MULTILINE)
    assert listed == list(sections(RECIPES))
