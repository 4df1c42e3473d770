"""The wheel: it has every module, the typing markers and the command, and nothing else; compiled and plain.

The compiled one is built of a source distribution, installed in an empty environment, and tested as cibuildwheel does.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.compiled_modules import class_constants
from tests.peers.availability import unavailable
from tests.wheels import (
    PACKAGES,
    REPOSITORY,
    build,
    build_source_distribution,
    copy_of_the_source,
    install,
    pip,
    run,
    run_in_group,
)

pytestmark = pytest.mark.process

ROUND_TRIP = """
import asyncio

from odradek.broker.broker import Broker
from odradek.client import Admin, Consumer, NewTopic, Producer, TopicPartition


async def main():
    async with Broker() as broker:
        async with Producer(broker.bootstrap) as producer:
            await producer.send_and_wait("t", b"small")
            await producer.send_and_wait("t", bytes(200_000))  # on a writer thread
        async with Consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("t", 0)])
            sizes = []
            while len(sizes) < 2:
                sizes += [len(record.value) for record in await consumer.poll()]
        async with Admin(broker.bootstrap) as admin:  # in slices
            topics = [NewTopic(f"n{number}", 1) for number in range(1000)]
            created = await admin.create_topics(topics, validate_only=True)
    try:
        raise ValueError
    except ValueError:
        async with Broker() as broker:  # starts and stops while an exception is handled
            pass
    print(sizes, len(created.values_or_raise()))


asyncio.run(main())
"""
"""What must work compiled as well: appends and reads, on the loop and elsewhere, and a request that takes long."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build(tmp_path_factory, ODRADEK_COMPILE="0")


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_source_distribution(tmp_path_factory)


@pytest.fixture(scope="module")
def compiled(source_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Compiled by default: ODRADEK_COMPILE=1 would only make a failure an error."""
    if shutil.which("cc") is None:
        unavailable("there is no C compiler")
    # Without optimisations, to spare the C compiler a minute.
    return build(tmp_path_factory, source_distribution, MYPYC_OPT_LEVEL="0")


def name_of(wheel: zipfile.ZipFile) -> str:
    return Path(str(wheel.filename)).name


def test_a_plain_wheel_runs_on_any_platform(wheel: zipfile.ZipFile) -> None:
    assert name_of(wheel).endswith("-py3-none-any.whl")


def test_the_wheel_has_every_module_and_no_test(wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    listed = subprocess.run(["git", "ls-files", *PACKAGES], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    testing = {f"odradek/testing/{path.name}" for path in (REPOSITORY / "odradek" / "testing").glob("*.py")}
    own = testing | {
        f"odradek/{path.name}" for path in (REPOSITORY / "odradek").iterdir() if path.suffix in (".py", ".typed")
    }
    assert packed == own | {f"odradek/{name}" for name in listed.stdout.split()}


def test_the_wheel_has_the_command_and_the_license(wheel: zipfile.ZipFile) -> None:
    [entry_points] = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    script = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]["odradek"]
    assert f"odradek = {script}" in wheel.read(entry_points).decode()
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())


def test_the_console_script_of_the_wheel_works(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    install(wheel, tmp_path)
    segment = next((REPOSITORY / "tests" / "storage" / "golden_dirs").glob("*/*.log"))

    odradek = str(tmp_path / "bin" / "odradek")

    assert run(tmp_path, odradek, "--help").startswith("usage: odradek COMMAND …\n")
    assert run(tmp_path, odradek, "topics", "--help").startswith("usage: odradek topics ")
    assert run(tmp_path, odradek, "dump-log", "--files", str(segment)).startswith(f"Dumping {segment}\n")


def test_a_source_distribution_has_the_modules_of_the_wheel_and_what_builds_it(
    source_distribution: Path, wheel: zipfile.ZipFile
) -> None:
    with tarfile.open(source_distribution) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    modules = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert modules == {name for name in packed if name.startswith("odradek/")}
    smoke_test = {f"tests/smoke/{path.name}" for path in (REPOSITORY / "tests" / "smoke").glob("*.py")}
    made = {name for name in packed if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    by_hand = {"LICENSE", "MANIFEST.in", "README.md", "build_backend.py", "pyproject.toml", "setup.py"}
    assert packed - modules - made == smoke_test | by_hand


@pytest.mark.timeout(660)  # the compiler is fetched, and takes a minute
def test_the_smoke_test_passes_in_an_empty_environment(compiled: zipfile.ZipFile, tmp_path: Path) -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    pip("--python", str(environment), "install", str(compiled.filename), *settings["test-requires"], environment={})
    for source in settings["test-sources"]:
        shutil.copytree(REPOSITORY / source, tmp_path / source)
    python, *arguments = shlex.split(settings["test-command"])
    done = run_in_group([str(environment / "bin" / python), *arguments], timeout=120, cwd=tmp_path, env={})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


@pytest.mark.timeout(660)  # the compiler is fetched, and takes a minute
def test_the_hottest_modules_of_a_wheel_are_compiled(compiled: zipfile.ZipFile, tmp_path: Path) -> None:
    assert not name_of(compiled).endswith("-any.whl")
    names = {name.partition("/")[0].partition(".")[0] for name in compiled.namelist() if ".dist-info/" not in name}
    assert names == {"odradek", *(f"odradek_{package}__mypyc" for package in ("broker", "client", "protocol"))}
    install(compiled, tmp_path)
    program = "import odradek.broker.broker, odradek.broker.storage.log as log; print(log.__file__)"
    where = Path(run(tmp_path, sys.executable, "-c", program).strip())
    assert where.suffix == ".so"
    assert where.is_relative_to(tmp_path)
    assert run(tmp_path, sys.executable, "-m", "odradek.broker", "--version").endswith(" (compiled)\n")
    assert run(tmp_path, sys.executable, "-c", ROUND_TRIP) == "[5, 200000] 1000\n"
    constants = class_constants()
    program = "".join(f"import {each.module}\nprint(repr({each}))\n" for each in constants if each.is_class_variable)
    expected = [repr(each.value) for each in constants if each.is_class_variable]
    assert run(tmp_path, sys.executable, "-c", program).split() == expected


def test_without_a_compiler_a_wheel_is_plain(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    plain = build(tmp_path_factory, CC="/nowhere/cc")
    assert name_of(plain).endswith("-py3-none-any.whl")
    install(plain, tmp_path)
    assert run(tmp_path, sys.executable, "-m", "odradek.broker", "--version").endswith(" (plain Python)\n")


FAILS_TO_COMPILE = """
import os, sys, build_backend
def build_wheel(*_):
    return sys.exit("error: command 'cc' failed") if os.environ.get("ODRADEK_COMPILE") else "plain.whl"
build_backend.build_meta.build_wheel = build_wheel
print(build_backend.build_wheel("."))
"""


@pytest.mark.parametrize(("environment", "printed"), [({}, "plain.whl\n"), ({"ODRADEK_COMPILE": "1"}, "")])
def test_a_failure_to_compile_is_an_error_only_if_compiling_is_required(
    environment: dict[str, str], printed: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILS_TO_COMPILE],
        capture_output=True, text=True, timeout=60, check=False, cwd=REPOSITORY,
        env={"PATH": os.environ["PATH"]} | environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (int(not printed), printed)
    assert "error: command 'cc' failed" in done.stderr


def test_an_editable_install_stays_plain(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    source = copy_of_the_source(tmp_path_factory)
    venv.create(tmp_path, with_pip=False)  # pip would take four seconds; ours installs into it
    pip("--python", str(tmp_path), "install", "--no-deps", "--editable", str(source), environment={})
    assert not list(source.rglob("*.so"))
