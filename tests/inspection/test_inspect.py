"""`inspect` of a directory that Kafka has written, compared with Kafka's own tools."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.inspection.command import inspect
from tests.storage.offline.test_stored_log_dir import spoil_everything_derived, state_of
from tests.storage.test_golden import HERE, expected

DUMPS = Path(__file__).parent / "dump" / "golden"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))


def summary_of(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert inspect([str(path), "--json"]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    return summary


def test_a_summary_agrees_with_kafkas_clients(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state_of(golden)
    summary = summary_of(golden, capsys)
    assert (summary["node_id"], summary["clean_shutdown"], summary["findings"]) == (1, False, [])
    assert summary["committed_offsets"]["golden-group"] == {"codec-none-0": 150}
    partitions = {each["topic"]: each for each in summary["partitions"]}
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        said, records = partitions[f"codec-{codec}"], expected(f"codec-{codec}.records")
        assert (said["log_start_offset"], said["log_end_offset"], said["codecs"]) == (0, len(records), [codec])
        assert (said["first_timestamp"], said["max_timestamp"]) == (records[0]["timestamp"], records[-1]["timestamp"])
        assert (said["compression_ratio"] > 3) == (codec != "none")
        assert said["findings"] == []
    assert (partitions["rolled"]["segments"], partitions["rolled"]["sampled_batches"]) == (2, 16)
    assert partitions["transactional"]["topic_id"] == "2eUHgRqfStWy-DpSiN8B4w"
    assert summary["size_bytes"] == sum(log.stat().st_size for log in golden.glob("*/*.log"))
    assert state_of(golden) == before


def test_a_summary_is_a_table_for_people(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect([str(golden)]) == 0
    lines = capsys.readouterr().out.splitlines()
    owner, held = lines[0].split("; ")
    assert owner.endswith("of node 1, cluster MkU3OEVBNTcwNTJENDM2Qk")
    assert held == "12 topics, 13 partitions, 1.9 MiB after no clean stop"
    (row,) = (line.split() for line in lines if line.startswith("codec-zstd-0"))
    assert row[1:6] == ["1", "4.1", "KiB", "0", "200"]
    assert row[6:9] == ["2023-11-14T22:13:20.000Z", "2023-11-14T22:16:39.000Z", "zstd"]
    assert any(re.fullmatch(r"golden-group +codec-none-0 +150", line) for line in lines)


def table_of(path: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[list[str], str]:
    """The partitions of the table of `inspect`, and all that it printed."""
    assert inspect([str(path), *flags]) == 0
    out = capsys.readouterr().out
    rows = out.split("\n\n")[1].splitlines()[1:]
    return [row.split()[0] for row in rows], out


def test_empty_partitions_and_internal_topics_are_shown_on_request(
    golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = sorted(path.parent.name for path in golden.glob("*/partition.metadata"))
    assert sorted(table_of(golden, capsys, "--all")[0]) == every
    of = {f"{each['topic']}-{each['partition']}": each for each in summary_of(golden, capsys)["partitions"]}
    full = [name for name, one in of.items() if one["log_start_offset"] < one["log_end_offset"]]
    assert sorted(of) == every  # as JSON for programs all of them
    shown, out = table_of(golden, capsys)
    assert shown == [name for name in full if not name.startswith("__")]
    left = len(every) - len(shown)
    assert left > 1
    assert f"\n{left} partitions are not shown: empty, or of internal topics; --all shows all\n" in out

    internal = "__consumer_offsets"
    assert table_of(golden, capsys, "--topic", internal)[0] == [name for name in every if name.startswith(internal)]
    shown, out = table_of(golden, capsys, "--topic", "codec-none")
    assert shown == ["codec-none-0"]
    assert "not shown" not in out
    assert re.search("golden-group +codec-none-0 +150", out)
    assert "golden-group" not in table_of(golden, capsys, "--topic", "codec-gzip")[1]
    assert inspect([str(golden), "--topic", "codec-noen"]) == 1
    assert capsys.readouterr().err == f"odradek: there is no topic codec-noen in {golden}; did you mean codec-none?\n"


def test_an_internal_partition_with_a_finding_is_shown(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = next(golden.glob("__consumer_offsets-*"))
    [log] = directory.glob("*.log")
    log.write_bytes(log.read_bytes() + b"torn")
    assert directory.name in table_of(golden, capsys)[0]


def test_the_directory_of_a_partition_and_a_file_name_what_is_listed(
    golden: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(*arguments: str) -> str:
        assert inspect([*arguments]) == 0
        return capsys.readouterr().out

    whole = listed(str(golden), "rolled-0")
    bases = sorted(int(path.stem) for path in (golden / "rolled-0").glob("*.log"))
    assert listed(f"{golden}/rolled-0") == listed(f"{golden}/rolled-0/") == whole
    monkeypatch.chdir(golden / "rolled-0")
    assert listed(".") == whole
    for base in bases:
        one = listed(str(golden), "rolled-0", "--segment", str(base))
        for suffix in ("log", "index", "timeindex"):
            assert listed(f"{base:020d}.{suffix}") == one
        assert one.count("\nsegment ") == 1
    assert listed(f"{golden}/rolled-0", "--segment", "3") == listed(f"{golden}/rolled-0/{0:020d}.log")


def test_another_file_and_a_partition_twice_are_errors(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = golden / "meta.properties"
    assert inspect([str(meta)]) == 1
    assert capsys.readouterr().err == f"odradek: {meta} is no file of a segment; dump-log prints snapshots, too\n"
    (golden / "rolled-0" / f"{7:020d}.index").touch()
    assert inspect([str(golden / "rolled-0" / f"{7:020d}.index")]) == 1
    assert capsys.readouterr().err == "odradek: rolled-0 has no segment 7\n"
    for wrong in (
        (f"{golden}/rolled-0", "rolled-0"),
        (f"{golden}/rolled-0/{0:020d}.log", "--segment", "0"),
        (str(golden), "--topic", "rolled", "--all"),
    ):
        with pytest.raises(SystemExit):
            inspect([*wrong])


def test_damage_is_listed_with_the_repair_by_a_broker(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil_everything_derived(golden)
    with (golden / "codec-gzip-0" / f"{0:020d}.log").open("ab") as log:
        log.write(b"torn")
    summary = summary_of(golden, capsys)
    partitions = {each["topic"]: each for each in summary["partitions"]}
    size = (HERE / "golden_dirs" / "codec-gzip-0" / f"{0:020d}.log").stat().st_size
    findings = partitions["codec-gzip"]["findings"]
    assert any(f"cutting off 4 bytes: {golden}/codec-gzip-0/{0:020d}.log at position {size}" in f for f in findings)
    assert any("leader epochs" in finding for finding in findings)
    assert any("recovery-point-offset-checkpoint" in finding for finding in summary["findings"])
    assert partitions["codec-gzip"]["log_end_offset"] == 200
    assert inspect([str(golden)]) == 0
    assert "A broker that starts here would log:\n  " in capsys.readouterr().out


def test_the_exit_status_is_1_if_a_partition_cannot_be_read(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = golden / "codec-gzip-0" / f"{0:020d}.log"
    (golden / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":-1}')  # so no log is repaired in memory
    with log.open("r+b") as file:
        file.seek(17)
        file.write(b"\xff" * 30)
    assert inspect([str(golden), "--json"]) == 1
    summary = json.loads(capsys.readouterr().out)
    assert summary["unreadable"] == 1
    partitions = {each["topic"]: each for each in summary["partitions"]}
    assert partitions["codec-gzip"]["findings"]


BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* position: (\d+) \w+: (-?\d+) size: (\d+) magic: 2"
    r" compresscodec: (\w+)"
)


@pytest.mark.parametrize("topic", ["rolled", "transactional", "compacted", "codec-lz4"])
def test_batches_and_entries_are_those_that_kafkas_tool_prints(
    golden: Path, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inspect([str(golden), f"{topic}-0", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    batches = [line["batch"] for line in lines if "batch" in line]
    printed = {
        suffix: "".join(path.read_text() for path in sorted(DUMPS.glob(f"{topic}-0.*.{suffix}.txt")))
        for suffix in ("log", "index", "timeindex")
    }
    names = ("base_offset", "last_offset", "records", "position", "max_timestamp", "size_bytes", "codec")
    said = [tuple(str(batch[name]) for name in names) for batch in batches]
    if topic != "rolled":  # what Kafka's tool prints of that one was too long to keep
        assert said == BATCH.findall(printed["log"])
    assert all(batch["crc_is_valid"] for batch in batches)
    entries = [line["index"] for line in lines if "index" in line]
    wanted = re.findall(r"^offset: (\d+) position: (\d+)", printed["index"], re.MULTILINE)
    assert [(str(entry["offset"]), str(entry["position"])) for entry in entries] == wanted
    entries = [line["timeindex"] for line in lines if "timeindex" in line]
    wanted = re.findall(r"^timestamp: (\d+) offset: (\d+)", printed["timeindex"], re.MULTILINE)
    assert [(str(entry["timestamp"]), str(entry["offset"])) for entry in entries] == wanted


def test_one_segment_can_be_listed_alone(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect([str(golden), "transactional-0", "--segment", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("partition  name transactional-0  topic id 2eUHgRqfStWy-DpSiN8B4w")
    (segment,) = (line for line in lines if line.startswith("segment"))
    assert segment.startswith("segment  base offset 10  size 1.4 KiB  max timestamp 2026-11-21T06:23:29.291Z")
    assert segment.endswith("index entries 0  timeindex entries 1")
    (marker,) = (line for line in lines if line.startswith("  batch  base offset 21 "))
    assert marker.endswith("producer id 1  producer epoch 0  base sequence -1  transactional  control")
    assert lines[-1] == "  txnindex  producer id 1  first offset 44  last offset 54  last stable offset 55"


@pytest.mark.process
@pytest.mark.parametrize("command", [["inspect"], ["verify"], ["inspect", "rolled-0"]], ids=" ".join)
def test_a_closed_pipe_ends_it_silently(golden: Path, command: list[str]) -> None:
    if command == ["verify"]:
        for log in golden.glob("*/*.log"):
            log.write_bytes(b"\xff" + log.read_bytes()[1:])  # so that it has much to say
    reading, writing = os.pipe()
    os.close(reading)
    process = [sys.executable, "-m", "odradek.broker", command[0], str(golden), *command[1:]]
    done = subprocess.run(process, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_unreadable_directory_is_an_error(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect([str(golden / "nowhere")]) == 1
    assert capsys.readouterr().err == f"odradek: {golden}/nowhere: No such file or directory\n"
    (golden / "empty").mkdir()
    assert inspect([str(golden / "empty")]) == 1
    assert "empty: no log directory" in capsys.readouterr().err
    assert inspect([str(golden), "nobody-0"]) == 1
    assert capsys.readouterr().err == f"odradek: there is no nobody-0 in {golden}\n"
    assert inspect([str(golden), "roled-0"]) == 1
    assert capsys.readouterr().err == f"odradek: there is no roled-0 in {golden}; did you mean rolled-0?\n"
    log = golden / "codec-none-0" / f"{0:020d}.log"
    (golden / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    log.write_bytes(b"\xff" * log.stat().st_size)
    assert inspect([str(golden), "codec-none-0"]) == 1
    assert "magic -1 is unknown" in capsys.readouterr().err
    for wrong in ([], [str(golden), "no partition"]):
        with pytest.raises(SystemExit) as exited:
            inspect(wrong)
        assert exited.value.code == 2
