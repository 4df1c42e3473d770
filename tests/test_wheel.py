"""What `pip install` brings: every module, the typing markers and the command, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.peers.availability import unavailable

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("protocol", "broker", "client", "pipeline")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build(tmp_path_factory)


def build(tmp_path_factory: pytest.TempPathFactory, **environment: str) -> zipfile.ZipFile:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(directory)]
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    source = tmp_path_factory.mktemp("source")  # a build leaves traces in its source
    for name in filter(None, listed.split("\0")):
        if name.startswith((*(f"{package}/" for package in PACKAGES), "pyproject", "setup.py", "README", "LICENSE")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((REPOSITORY / name).read_bytes())
    built = subprocess.run(
        [*command, str(source)],
        capture_output=True, text=True, timeout=600, check=False, env=os.environ | environment,
    )  # fmt: skip
    if built.returncode:
        unavailable(f"the wheel could not be built: {built.stderr.strip()[-1000:]}")
    return zipfile.ZipFile(next(directory.glob("*.whl")))


def test_the_wheel_runs_on_any_platform(wheel: zipfile.ZipFile) -> None:
    assert Path(str(wheel.filename)).name.endswith("-py3-none-any.whl")


def test_every_module_is_in_it_and_no_test(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    listed = subprocess.run(["git", "ls-files", *PACKAGES], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert packed == set(listed.stdout.split())


def test_the_command_and_the_license_are_in_it(wheel: zipfile.ZipFile) -> None:
    [entry_points] = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    script = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]["odradek"]
    assert f"odradek = {script}" in wheel.read(entry_points).decode()
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())


def test_the_console_script_of_the_wheel_works(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    install(wheel, tmp_path)
    segment = next((REPOSITORY / "tests" / "storage" / "golden_dirs").glob("*/*.log"))

    def odradek(*arguments: str) -> str:
        done = subprocess.run(
            [tmp_path / "bin" / "odradek", *arguments],
            capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert odradek("topics", "--help").startswith("usage: odradek topics ")
    assert odradek("dump-log", "--files", str(segment)).startswith(f"Dumping {segment}\n")


@pytest.mark.timeout(660)  # the compiler is fetched, and takes a minute
def test_the_hottest_modules_are_compiled_on_demand(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    compiled = build(tmp_path_factory, ODRADEK_COMPILE="1")
    assert not Path(str(compiled.filename)).name.endswith("-any.whl")
    install(compiled, tmp_path)
    program = "import broker.broker, broker.storage.log as log; print(log.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).suffix == ".so"
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)


def install(wheel: zipfile.ZipFile, target: Path) -> None:
    installing = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*installing, "--target", target, str(wheel.filename)], capture_output=True, timeout=120, check=True)
