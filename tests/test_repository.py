"""The repository keeps the promises that its own pages make."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from odradek.client.network.connection import SOFTWARE_VERSION

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]

FORBIDDEN = {
    "an absolute path of somebody's machine": re.compile(r"(?<![\w.:/-])/(work|root|home/\w+|Users/\w+)/"),
    "a registry's host": re.compile(r"\b(ghcr|quay|gcr|docker)\.io\b|\bregistry\.\w+\.\w+|\.jfrog\.|artifactory"),
    "an unfinished note": re.compile(r"\b(TODO|FIXME|XXX)\b"),
}
BINARY = {".png", ".log", ".index", ".timeindex", ".snapshot", ".gz"}


def text(name: str) -> str:
    return (REPOSITORY / name).read_text()


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    return [REPOSITORY / name for name in listed.split("\0") if name and (REPOSITORY / name).is_file()]


@pytest.mark.process
def test_no_module_is_longer_than_400_lines() -> None:
    modules = [path for path in tracked_files() if path.suffix == ".py"]
    assert len(modules) > 1000
    assert [str(path) for path in modules if path.read_text().count("\n") > 400] == []


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", text("Makefile"), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_every_make_command_of_a_page_is_a_target(page: str) -> None:
    commands = re.findall(r"(?:^|`)make((?: [a-z]+)+)", text(page), re.MULTILINE)
    named = {target for command in commands for target in command.split()}
    assert named <= make_targets()


def test_the_readme_names_the_two_commands_and_ci_runs_its_test_command() -> None:
    assert re.search(r"^make run$", text("README.md"), re.MULTILINE)
    assert re.search(r"^make test$", text("README.md"), re.MULTILINE)
    assert re.search(r"^make test\b", text(".ci/run"), re.MULTILINE)


def documentation() -> list[str]:
    return [f"docs/{path.name}" for path in sorted((REPOSITORY / "docs").glob("*.md"))]


def links(page: str) -> list[Path]:
    """What a page links to in this repository."""
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text(page))
    return [(REPOSITORY / page).parent / link for link in found if "://" not in link]


@pytest.mark.parametrize("page", [*PAGES, "ARCHITECTURE.md", *documentation()])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    assert [link for link in links(page) if not link.exists()] == []


def test_the_index_of_the_documentation_has_every_page_once_and_the_readme_links_to_it() -> None:
    listed = [link.name for link in links("docs/README.md") if link.resolve().parent == REPOSITORY / "docs"]
    assert sorted(listed) == [
        path.name for path in sorted((REPOSITORY / "docs").glob("*.md")) if path.name != "README.md"
    ]
    assert REPOSITORY / "docs/README.md" in links("README.md")


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_name_modules_that_exist(page: str) -> None:
    for module in re.findall(r"python -m ([a-z_.]+)", text(page)):
        place = REPOSITORY / module.replace(".", "/")
        assert module == "pytest" or place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), module


def test_the_architecture_names_modules_that_exist() -> None:
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+(?:\.py)?)/?`", text("ARCHITECTURE.md"))
    assert len(named) > 80
    places = [REPOSITORY, REPOSITORY / "broker"]  # the lives of requests are inside the broker
    endings = ["", ".py"]
    assert [
        name for name in named if not any((place / f"{name}{end}").exists() for place in places for end in endings)
    ] == []


def test_the_architecture_draws_the_layers_that_are_checked() -> None:
    picture = re.search(r"```\n(development .*?)```", text("ARCHITECTURE.md"), re.DOTALL)
    assert picture is not None
    drawn = [re.split(r" {3,}", line)[0].split() for line in picture[1].splitlines()]
    contract = tomllib.loads(text("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]
    assert contract["exhaustive"]
    assert drawn == [layer.replace(".", "/").split(" | ") for layer in contract["layers"]]


def mapped_packages() -> list[Path]:
    return [path for path in tracked_files() if path.name == "__init__.py" and "| module | what |" in path.read_text()]


@pytest.mark.parametrize("init", mapped_packages(), ids=lambda init: init.parent.name)
def test_the_map_of_a_package_names_every_module_and_no_other(init: Path) -> None:
    docstring = ast.get_docstring(ast.parse(init.read_text())) or ""
    table = docstring.partition("| module | what |\n")[2].partition("\n\n")[0]
    named = {name for line in table.splitlines() for name in re.findall(r"\w+", line.split("|")[1])}
    modules = {path.stem for path in init.parent.glob("*.py")}
    packages = {path.parent.name for path in init.parent.glob("*/*.py")}
    assert named - {"__main__"} == (modules | packages) - {"__init__", "__main__"}


def test_every_ignored_lint_rule_has_its_reason() -> None:
    lint = text("pyproject.toml").partition("[tool.ruff.lint]")[2].partition("[tool.ruff.lint.mccabe]")[0]
    rules = [line for line in lint.partition("\nignore = [")[2].splitlines() if re.search(r'"[A-Z]+\d*"', line)]
    assert len(rules) > 10
    assert [line for line in rules if "#" not in line] == []


@pytest.mark.process
def test_every_suppression_names_its_rule() -> None:
    silent = re.compile(r"#\s*(noqa(?!: [A-Z]+\d+)|type:\s*ignore(?!\[))")
    sources = [path for path in tracked_files() if path.suffix == ".py" and path != Path(__file__)]
    assert [str(path) for path in sources if silent.search(path.read_text())] == []


@pytest.mark.process
def test_nothing_tracked_names_a_machine_a_registry_or_an_unfinished_thing() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}: {what}: {match[0]}"
        for path in tracked_files()
        if path.suffix not in BINARY and path != Path(__file__)
        for what, pattern in FORBIDDEN.items()
        if (match := pattern.search(path.read_text(errors="replace")))
    ]
    assert found == []


@pytest.mark.process
def test_generated_files_are_as_the_code_makes_them(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "odradek.broker.config"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        check=True,
        capture_output=True,
    )
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert made
    for path in made:
        name = path.relative_to(tmp_path)
        assert (REPOSITORY / name).read_text() == path.read_text(), f"{name} is out of date: make docs"


def test_packages_are_typed_and_packed() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    checked = project["tool"]["mypy"]["packages"]
    for package in project["tool"]["setuptools"]["packages"]["find"]["include"]:
        assert (REPOSITORY / package.rstrip("*") / "py.typed").is_file()
        assert package.rstrip("*") in checked


def test_the_client_tells_brokers_the_version_of_the_project() -> None:
    assert tomllib.loads(text("pyproject.toml"))["project"]["version"] == SOFTWARE_VERSION


def test_the_console_script_exists() -> None:
    scripts: dict[str, str] = tomllib.loads(text("pyproject.toml"))["project"]["scripts"]
    for target in scripts.values():
        module, _, function = target.partition(":")
        source = text(f"{module.replace('.', '/')}.py")
        assert f"def {function}(" in source


def test_scripts_are_executable() -> None:
    assert os.access(REPOSITORY / ".ci" / "run", os.X_OK)


def test_the_license_is_the_one_declared() -> None:
    declared = tomllib.loads(text("pyproject.toml"))["project"]["license"]
    assert declared == "Apache-2.0"
    assert "Version 2.0, January 2004" in text("LICENSE")


def loops_of_gathers(source: str) -> list[int]:
    """The lines of the loops that wait by `asyncio.gather` alone."""
    awaited = {
        loop.lineno: [ast.unparse(node.value) for node in ast.walk(loop) if isinstance(node, ast.Await)]
        for loop in ast.walk(ast.parse(source))
        if isinstance(loop, ast.While)
    }
    return [line for line, values in awaited.items() if values and all(map(_GATHER.match, values))]


_GATHER = re.compile(r"(asyncio\.)?gather\(")


@pytest.mark.process
def test_no_loop_waits_by_gather_alone() -> None:
    """From Python 3.12 on it returns at once if all tasks are done: their callbacks, which end the loop, never run."""
    assert loops_of_gathers("while tasks:\n    await asyncio.gather(*tasks, return_exceptions=True)") == [1]
    sources = {str(path): path.read_text() for path in tracked_files() if path.suffix == ".py"}
    found = {path: loops_of_gathers(source) for path, source in sources.items() if "gather(" in source}
    assert {path: lines for path, lines in found.items() if lines} == {}


def changes_across_an_await(source: str) -> list[int]:
    """Return the lines of `object.attribute += await …` in a module, with any operator.

    The attribute is read before the await: what another task writes to it meanwhile is lost.
    """
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AugAssign)
        and not isinstance(node.target, ast.Name)
        and any(isinstance(part, ast.Await) for part in ast.walk(node.value))
    ]


@pytest.mark.process
def test_no_attribute_is_changed_across_an_await() -> None:
    assert changes_across_an_await("async def f(self):\n    self.a |= 1 + await g()\n    b += await g()\n") == [2]
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}"
        for path in tracked_files()
        if path.suffix == ".py"
        for line in changes_across_an_await(path.read_text())
    ]
    assert found == []
