"""Our command beside Kafka's DumpLogSegments: the recordings are true, and logs of our broker print alike."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest

from odradek.client.cli import run
from tests.handlers.requests import create
from tests.inspection.dump import kafka
from tests.inspection.dump.cases import CASES, Case
from tests.inspection.dump.recording import recorded, recording
from tests.peers import java, odradek
from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server
from tests.peers.transactional.raw import RawProducer
from tests.wire import Wire

pytestmark = pytest.mark.java

PROPERTIES = {
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
    "log.segment.bytes": "1048576",
    "log.index.interval.bytes": "512",
    "log.retention.ms": "-1",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recording_is_true(case: Case, tmp_path: Path) -> None:
    assert kafka.record(case, tmp_path) == recorded(case)


def fill(bootstrap: str) -> None:
    """Some segments in each codec, some of them written by idempotent producers."""
    records = [Outgoing(b"key", b"value %d" % number * 20, (("h", b"v"),), 1_700_000_000_000) for number in range(8000)]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        Confluent().produce(bootstrap, f"codec-{codec}", records, codec=codec, idempotent=codec in ("none", "zstd"))


def check(directory: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    monkeypatch.chdir(directory)
    suffixes = ("log", "index", "timeindex", "snapshot")
    files = [
        str(path.relative_to(directory)) for suffix in suffixes for path in sorted(directory.glob(f"*-0/*.{suffix}"))
    ]
    assert len(files) > 5 * 3, "several segments"
    for option in ("--print-data-log", "--verify-index-only"):
        capfdbinary.readouterr()
        assert run(["dump-log", "--files", ",".join(files), option]) == 0
        ours = recording(*capfdbinary.readouterr(), directory, failed=False)
        theirs = kafka.dump(directory, ",".join(files), [option])
        assert in_order_of_paths(theirs) == in_order_of_paths(ours)


def in_order_of_paths(printed: bytes) -> tuple[bytes, list[bytes]]:
    """Standard output, and the complaints sorted by file: Kafka prints them in the order of a hash map of paths."""
    out, _, complaints = printed.partition(b"=== standard error\n")
    return out, sorted(re.split(rb"\n(?! )", complaints))


def test_logs_of_our_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    server = odradek.prepare(tmp_path / "server", PROPERTIES)
    server.start()
    try:
        fill(server.bootstrap)
        shutil.copytree(server.log_dir, tmp_path / "running")  # with indexes that are preallocated
    finally:
        server.stop()
    check(tmp_path / "running", monkeypatch, capfdbinary)
    check(server.log_dir, monkeypatch, capfdbinary)


async def transact(server: Server) -> None:
    """Committed, aborted and open transactions of both versions of the protocol, with offsets."""
    async with Wire(server.host, server.port) as wire:
        await create(wire, "t")
        for generation in (1, 2):
            producer = RawProducer(wire, f"producer {generation}", generation=generation)
            await producer.init()
            for committed in (True, False):
                if generation == 1:
                    await producer.add({"t": [0]})
                await producer.send("t", b"value")
                await producer.send_offsets("group", {("t", 0): generation})
                await producer.end(committed=committed)
                await producer.await_state("CompleteCommit" if committed else "CompleteAbort")
        producer = RawProducer(wire, "open")
        await producer.init()
        await producer.send("t", b"value")


def test_transactions_of_our_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    counts = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    server = odradek.prepare(tmp_path / "server", counts).start()
    try:
        asyncio.run(transact(server))
        formatted = java.run(
            java.CONSOLE_CONSUMER,
            *("--bootstrap-server", server.bootstrap, "--topic", "__transaction_state", "--from-beginning"),
            *("--formatter", "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter", "--timeout-ms", "3000"),
        ).stdout
    finally:
        server.kill()

    states = json.loads(f"[{formatted.strip().replace('}{', '},{')}]")
    assert {each["key"]["data"]["transactionalId"] for each in states} == {"producer 1", "producer 2", "open"}
    assert {each["value"]["version"] for each in states} == {1}
    monkeypatch.chdir(server.log_dir)
    for option, partition in (
        ("--transaction-log-decoder", "__transaction_state-0"),
        ("--offsets-decoder", "__consumer_offsets-0"),
        ("--print-data-log", "t-0"),
    ):
        files = ",".join(
            str(path.relative_to(server.log_dir))
            for suffix in ("log", "index", "timeindex", "txnindex")
            for path in sorted((server.log_dir / partition).glob(f"*.{suffix}"))
        )
        capfdbinary.readouterr()
        assert run(["dump-log", "--files", files, option]) == 0
        ours = recording(*capfdbinary.readouterr(), server.log_dir, failed=False)
        theirs = kafka.dump(server.log_dir, files, [option])
        assert in_order_of_paths(theirs) == in_order_of_paths(ours)
        if option == "--transaction-log-decoder":
            assert theirs.count(b'"transactionStatus"') == len(states)
