"""`odradek` and `python -m odradek`: help, dispatch, mistakes, and what each command imports."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from odradek.commands import (
    CLUSTER,
    GROUPS,
    JOBS,
    LOG_DIRECTORIES,
    METADATA,
    PROTOCOL,
    SERVER,
    SHELL,
    SNAPSHOT,
    WITHOUT_ITS_GROUP,
    help_text,
)

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).resolve().parents[1]
MODULES = sorted(
    {
        command.module
        for group in (SERVER, METADATA, LOG_DIRECTORIES, SNAPSHOT, CLUSTER, PROTOCOL, JOBS, SHELL)
        for command in group.values()
    }
)


def run(*arguments: str, module: str = "odradek") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True, text=True, timeout=60, check=False, cwd=REPOSITORY, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def modules_after(*arguments: str) -> set[str]:
    """The modules that are loaded when a command has ended."""
    program = (
        "import sys\nfrom odradek.commands import run\n"
        f"try: run({[*arguments]!r})\n"
        "except SystemExit: pass\n"
        "finally: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("module", MODULES)
def test_every_command_names_a_module_that_exists(module: str) -> None:
    assert import_module(module)


def test_help_lists_every_command_in_its_group() -> None:
    shown = run("--help").stdout
    for group, prefix in (
        (SERVER, ""),
        (METADATA, "metadata "),
        (LOG_DIRECTORIES, ""),
        (SNAPSHOT, "snapshot "),
        (CLUSTER, ""),
        (PROTOCOL, "protocol "),
        (JOBS, "pipeline "),
        (SHELL, ""),
    ):
        rows = [line for line in shown.split("\n\n") if all(f"\n  {prefix}{name} " in line for name in group)]
        assert len(rows) == 1
    assert shown == f"{help_text('python -m odradek')}\n"
    assert max(map(len, shown.splitlines())) <= 100


def typed_in_documentation() -> list[list[str]]:
    """The words behind `odradek` where a page shows a command."""
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]
    typed = re.compile(r"(?:^|[$|`] ?|bin/)odradek ([^`|\n]+)", re.MULTILINE)
    return [line.split() for page in pages for line in typed.findall(page.read_text())]


def test_commands_of_the_documentation_exist() -> None:
    typed = typed_in_documentation()
    assert {
        "broker",
        "users",
        "metadata",
        "inspect",
        "verify",
        "dump-log",
        *CLUSTER,
        "protocol",
        "pipeline",
        *SHELL,
    } <= {line[0] for line in typed}
    groups = {"metadata": METADATA, "snapshot": SNAPSHOT, "protocol": PROTOCOL, "pipeline": JOBS}
    for command, *rest in typed:
        known = {*SERVER, *LOG_DIRECTORIES, *CLUSTER, *groups, *SHELL, *WITHOUT_ITS_GROUP}
        known |= {"COMMAND", "--help", "--version"}
        assert command in known, command
        if command in groups and rest and rest[0] != "JOB":
            assert rest[0] in groups[command], rest


def test_help_loads_no_package_and_takes_less_than_a_tenth_of_a_second() -> None:
    packages = {name for name in modules_after("--help") if name.startswith("odradek")}
    assert packages == {"odradek", "odradek.commands"}
    assert "argparse" not in modules_after("--help")
    best = min(cpu_seconds_of_help() for _ in range(5))
    assert best < 0.1


def cpu_seconds_of_help() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (("produce", "--topic", "t", "--bootstrap-server", "127.0.0.1:1"), ("odradek.broker", "odradek.pipeline")),
        (("topics", "--help"), ("odradek.broker", "odradek.pipeline", "odradek.protocol", "asyncio", "shtab")),
        (("protocol", "list"), ("odradek.broker", "odradek.client", "odradek.pipeline", "asyncio")),
        (("broker", "--help"), ("odradek.client", "odradek.pipeline")),
        (
            ("metadata", "show", "--help"),
            ("odradek.client", "odradek.pipeline", "odradek.broker.server", "odradek.broker.broker", "grpc"),
        ),
        (
            ("inspect", "--help"),
            ("odradek.client", "odradek.pipeline", "odradek.broker.server", "odradek.broker.broker"),
        ),
        (("dump-log", "--help"), ("odradek.pipeline", "odradek.broker.server", "odradek.broker.broker", "asyncio")),
        (("pipeline", "export", "--help"), ("odradek.broker", "pyspark", "pyarrow", "asyncio")),
        (("completion", "bash"), ("pyspark", "pyarrow", "numpy", "pandas", "grpc")),
    ],
    ids=lambda value: " ".join(value[:2]),
)
def test_a_command_loads_only_what_it_uses(arguments: tuple[str, ...], unwanted: tuple[str, ...]) -> None:
    assert set(unwanted) & modules_after(*arguments) == set()


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("topcs", "'topics'"),
        ("brokr", "'broker'"),
        ("Verify", "'verify'"),
        ("decod", "'protocol decode'"),
        ("exprt", "'pipeline export'"),
        ("pipelin", "'pipeline'"),
        ("--verion", "'--version'"),
        ("--bootstrap-servers", "'--bootstrap-server'"),
    ],
)
def test_an_unknown_command_gets_the_nearest_one(typed: str, suggested: str) -> None:
    done = run(typed, "--topic", "t")
    assert done.returncode == 2
    assert done.stdout == ""
    kind = "option" if typed.startswith("-") else "command"
    assert done.stderr == f"python -m odradek: error: there is no {kind} {typed!r}; did you mean {suggested}?\n"


def test_every_command_answers_a_misspelt_flag_in_one_line_with_the_nearest_flag() -> None:
    typed = [name for group in GROUPS.values() for name in group]
    program = (
        "import sys\nfrom odradek.commands import run\n"
        f"for typed in {typed!r}:\n"
        "    try: run([*typed.split(), '--hepl', 'x'])\n"
        "    except SystemExit as ended: assert ended.code == 2\n"
        "    else: raise AssertionError(typed)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        f"odradek {each}: error: there is no flag --hepl; did you mean --help?" for each in typed
    ]


@pytest.mark.parametrize(
    ("module", "typed", "suggested"),
    [("odradek.client", "topic", "topics"), ("odradek.protocol", "lst", "list"), ("odradek.pipeline", "stat", "stats")],
)
def test_an_unknown_command_of_a_package_gets_the_nearest_one(module: str, typed: str, suggested: str) -> None:
    done = run(typed, module=module)
    assert done.returncode == 2
    assert f"python -m {module}: error: there is no command {typed!r}; did you mean {suggested!r}?" in done.stderr


def test_no_command_and_one_like_none_lead_to_the_help() -> None:
    assert run().stderr.endswith("error: name a command; python -m odradek --help lists them\n")
    assert run("xyz").stderr.endswith("there is no command 'xyz'; python -m odradek --help lists the commands\n")
    assert (run().returncode, run("xyz").returncode) == (2, 2)


@pytest.mark.parametrize(
    "program",
    ["broker", "inspect", "verify", "dump-log", "topics create", "protocol show", "pipeline run", "completion"],
)
def test_usage_names_what_was_typed(program: str, tmp_path: Path) -> None:
    """Here the script is a file called `odradek`, with the two lines that pip writes."""
    script = tmp_path / "odradek"
    script.write_text("from odradek.__main__ import main\nmain()\n")
    typed = subprocess.run(
        [sys.executable, str(script), *program.split(), "--help"],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert typed.stdout.startswith(f"usage: odradek {program} ")
    assert run(*program.split(), "--help").stdout.startswith(f"usage: python -m odradek {program} ")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("broker", ("--help",)),
        ("broker", ("inspect", "--help")),
        ("client", ("topics", "--help")),
        ("client", ("dump-log", "--help")),
        ("protocol", ("show", "--help")),
        ("pipeline", ("export", "--help")),
    ],
)
def test_in_a_checkout_the_packages_run_as_modules(module: str, arguments: tuple[str, ...]) -> None:
    name = " ".join([module, *arguments[:-1]])
    assert run(*arguments, module=module).stdout.startswith(f"usage: python -m {name} ")
    assert run(*arguments, module=f"odradek.{module}").stdout.startswith(f"usage: python -m odradek.{name} ")


def test_flags_of_the_cluster_may_stand_before_the_command() -> None:
    done = run("--bootstrap-server", "127.0.0.1:1", "topics", "list")
    assert done.returncode == 1
    assert "find the cluster: 127.0.0.1:1: connection refused" in done.stderr
    assert "error: name a command: produce, " in run("--bootstrap-server=127.0.0.1:1").stderr


def test_the_version_is_that_of_the_project() -> None:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    assert run("--version").stdout == f"odradek {version}\n"


@pytest.mark.parametrize("arguments", ["--help", "protocol list"])
def test_a_closed_pipe_is_no_error(arguments: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "odradek", *arguments.split()],
        stdout=writing, stderr=subprocess.PIPE, check=False, cwd=REPOSITORY,
    )  # fmt: skip
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode in (141, -signal.SIGPIPE)


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "odradek", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_of_a_cluster(number: signal.Signals, status: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = start("topics", "list", "--bootstrap-server", f"127.0.0.1:{listener.getsockname()[1]}")
        connection, _ = listener.accept()
        with connection:
            process.send_signal(number)
            assert process.communicate() == (b"", b"")
    assert process.returncode == status


def test_sigterm_stops_a_broker_with_status_0(tmp_path: Path) -> None:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), "metrics.port": "-1"}
    process = start("broker", *(word for pair in properties.items() for word in ("--override", "=".join(pair))))
    assert process.stderr is not None
    while b" started" not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("typed", "usage"),
    [("decode", "odradek protocol decode"), ("show", "odradek protocol show"), ("export", "odradek pipeline export")],
)
def test_a_unique_name_needs_no_group_in_front(typed: str, usage: str) -> None:
    assert run(typed, "--help").stdout.startswith(f"usage: python -m {usage} ")


def test_verify_is_the_command_and_not_the_job() -> None:
    assert run("verify", "--help").stdout.startswith("usage: python -m odradek verify ")
    assert run("pipeline", "verify", "--help").stdout.startswith("usage: python -m odradek pipeline verify ")
