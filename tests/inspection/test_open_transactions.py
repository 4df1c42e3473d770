"""`inspect` of a directory whose transactions were open when its broker stopped."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from odradek.broker.inspection.command import inspect
from odradek.broker.inspection.open_transactions import OpenTransaction
from odradek.broker.inspection.summary import summarize
from odradek.protocol.codec import encode
from odradek.protocol.stored_records.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from tests.storage.logs import follower_batch
from tests.storage.test_golden import HERE

T0 = 1_700_000_000_000
STATE, DATA = "__transaction_state-20/00000000000000000000.log", "transactional-0/00000000000000000000.log"
STATE_END, DATA_END = 19, 66
ONGOING, PREPARE_COMMIT, COMPLETE_ABORT = 1, 2, 5


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    directory = Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))
    for partition in (STATE, DATA):
        for index in (directory / partition).parent.glob("*.index"):
            index.unlink(missing_ok=True)  # the batches behind it are new
    return directory


def append(path: Path, data: bytes) -> None:
    segments = sorted(path.parent.glob("*.log"))
    with segments[-1].open("ab") as file:
        file.write(data)


def store(path: Path, offset: int, transactional_id: str, value: bytes | None) -> None:
    key = struct.pack(">h", 0) + encode(TransactionLogKey(transactional_id), 0)
    append(path / STATE, follower_batch(value, base_offset=offset, key=key))


def state(producer_id: int, status: int, version: int = 1) -> bytes:
    partitions = [PartitionsSchema("transactional", [0]), PartitionsSchema("elsewhere", [3])]
    value = TransactionLogValue(
        producer_id=producer_id,
        producer_epoch=4,
        transaction_status=status,
        transaction_partitions=partitions,
        transaction_start_timestamp_ms=T0,
    )
    return struct.pack(">h", version) + encode(value, version)


def write(path: Path, producer_id: int, offset: int) -> None:
    data = follower_batch(
        b"v", base_offset=offset, producer_id=producer_id, producer_epoch=4, base_sequence=0, is_transactional=True
    )
    append(path / DATA, data)


def test_the_golden_directory_has_none(golden: Path) -> None:
    assert summarize(str(golden)).open_transactions == []


@pytest.mark.parametrize("version", [0, 1])
def test_the_state_and_the_logs_are_joined(golden: Path, version: int) -> None:
    store(golden, STATE_END, "open", state(700, ONGOING, version))
    store(golden, STATE_END + 1, "decided", state(701, PREPARE_COMMIT, version))
    store(golden, STATE_END + 2, "ended", state(702, ONGOING, version))
    store(golden, STATE_END + 3, "ended", state(702, COMPLETE_ABORT, version))
    store(golden, STATE_END + 4, "expired", state(703, ONGOING, version))
    store(golden, STATE_END + 5, "expired", None)
    write(golden, 700, DATA_END)
    write(golden, 800, DATA_END + 1)

    known = {"producer_epoch": 4, "start_timestamp": T0, "partitions": ["transactional-0", "elsewhere-3"]}
    assert summarize(str(golden)).open_transactions == [
        OpenTransaction(
            producer_id=700,
            transactional_id="open",
            state="Ongoing",
            first_offsets={"transactional-0": DATA_END},
            **known,
        ),
        OpenTransaction(producer_id=701, transactional_id="decided", state="PrepareCommit", **known),
        OpenTransaction(
            producer_id=800,
            producer_epoch=4,
            partitions=["transactional-0"],
            first_offsets={"transactional-0": DATA_END + 1},
        ),
    ]


def test_they_are_a_table_for_people(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(golden, STATE_END, "open", state(700, ONGOING))
    write(golden, 700, DATA_END)

    assert inspect([str(golden)]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    start = "2023-11-14T22:13:20.000Z"
    assert ["open", "700", "4", "Ongoing", start, "transactional-0", str(DATA_END)] in lines
    assert ["open", "700", "4", "Ongoing", start, "elsewhere-3", "-"] in lines


@pytest.mark.parametrize("value", [b"\0", struct.pack(">h", 9), struct.pack(">h", 1) + b"\0"])
def test_an_unreadable_record_is_a_finding(golden: Path, value: bytes) -> None:
    store(golden, STATE_END, "bad", value)
    store(golden, STATE_END + 1, "open", state(700, ONGOING))

    summary = summarize(str(golden))

    assert [each.transactional_id for each in summary.open_transactions] == ["open"]
    assert any(f"offset {STATE_END} cannot be read" in line for line in summary.findings)
