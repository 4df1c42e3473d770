"""Every file of a log directory of Apache Kafka, compared with the output of its DumpLogSegments 4.3.1.

`golden/<partition>.<file>.txt` is what `--print-data-log --files <partition>/<file>` printed, standard output and then
standard error, where absolute paths begin with `logs`. Of the two largest there is a hash, without `--print-data-log`
but with `--deep-iteration`: they are a megabyte each, of lines that look like those of the other logs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from odradek.client.cli import run

GOLDEN_DIRS = Path(__file__).parents[2] / "storage" / "golden_dirs"
PRINTED = sorted((Path(__file__).parent / "golden").glob("*.txt"))
HASHES = {
    "rolled-0/00000000000000000000.log": "a9b85c65fe236ae5f51fd0500a74177fd36cbcce9dc6f8603a6da9de66fbf238",
    "rolled-0/00000000000000010788.log": "e3c5fe7b66a10529c54cd52d75af8e508068729ad679f48015f10b7289f86853",
}


@pytest.fixture(autouse=True)
def _in_golden_dirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN_DIRS)


def dump(file: str, option: str, capfdbinary: pytest.CaptureFixture[bytes]) -> bytes:
    assert run(["dump-log", option, "--files", file]) == 0
    out, err = capfdbinary.readouterr()
    return out + err.replace(bytes(GOLDEN_DIRS), b"logs")


@pytest.mark.parametrize("printed", PRINTED, ids=lambda path: path.stem)
def test_prints_what_kafka_prints(printed: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    partition, _, file = printed.stem.partition(".")
    assert dump(f"{partition}/{file}", "--print-data-log", capfdbinary) == printed.read_bytes()


@pytest.mark.parametrize("file", HASHES)
def test_prints_what_kafka_prints_of_a_large_log(file: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert hashlib.sha256(dump(file, "--deep-iteration", capfdbinary)).hexdigest() == HASHES[file]


def test_every_file_of_the_golden_directories_is_dumped() -> None:
    files = {
        f"{path.parent.name}.{path.name}"
        for suffix in ("log", "index", "timeindex", "txnindex", "snapshot")
        for path in GOLDEN_DIRS.glob(f"*-*/*.{suffix}")
    }
    assert files == {path.stem for path in PRINTED} | {file.replace("/", ".") for file in HASHES}
