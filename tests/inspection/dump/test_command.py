"""The command line of dump-log: flags, errors, signals, closed pipes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.client.cli import INTERRUPTED, PIPE_CLOSED, run

GOLDEN_DIRS = Path(__file__).parents[2] / "storage" / "golden_dirs"
LOG = GOLDEN_DIRS / "rolled-0" / "00000000000000000000.log"


@pytest.mark.parametrize("topic", ["cluster-metadata", "remote-log-metadata", "share-group-state"])
def test_other_decoders_are_refused(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        run(["dump-log", "--files", str(LOG), f"--{topic}-decoder"])
    assert exit_info.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: --{topic}-decoder is not supported\n")


@pytest.mark.parametrize("part", ["key", "value"])
def test_decoder_classes_other_than_that_of_strings_are_refused(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["dump-log", "--files", str(LOG), f"--{part}-decoder-class", "com.example.Decoder"])
    assert "there is no class com.example.Decoder: only org.apache.kafka" in capsys.readouterr().err


def test_a_decoder_class_need_not_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dump-log", "--files", str(LOG), "--max-bytes", "20000", "--key-decoder-class"]) == 0
    assert " key: k00000 payload: " in capsys.readouterr().out


@pytest.mark.parametrize("names", ["", ",,"])
def test_no_file_is_a_mistake(names: str) -> None:
    with pytest.raises(SystemExit):
        run(["dump-log", "--files", names])


@pytest.mark.parametrize(
    "name", [f"0.{suffix}" for suffix in ("log", "index", "timeindex", "txnindex", "snapshot", "txt")]
)
def test_a_missing_file_is_an_error(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for other in {"0.log", "0.index"} - {name}:
        (tmp_path / other).touch()
    assert run(["dump-log", "--files", str(tmp_path / name)]) == 1
    assert capsys.readouterr().err == f"error: [Errno 2] No such file or directory: '{tmp_path / name}'\n"


def start(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "odradek.client", "dump-log", "--files", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.process
def test_control_c_ends_it(tmp_path: Path) -> None:
    copies = ",".join([str(LOG)] * 500)  # half a gigabyte of lines
    with start(copies, "--print-data-log") as process:
        assert process.stdout is not None
        process.stdout.read(1 << 20)
        process.send_signal(signal.SIGINT)
        while process.stdout.read(1 << 16):
            pass
    assert process.returncode == INTERRUPTED


@pytest.mark.process
def test_a_closed_pipe_ends_it() -> None:
    with start(str(LOG), "--print-data-log") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == PIPE_CLOSED
