from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from odradek.broker.replication.appends.disk_threads import DECODED_IN_A_TURN, DiskThreads
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES, MOST_DECODED_BYTES, LogAppender
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.producers.producer_snapshots import decode_snapshot
from odradek.broker.storage.producers.producer_state import CROWD
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.replication.appends.appending import LARGE, Appending
from tests.storage.logs import NOW, TOPIC_ID, batch, crowd, marker, open_log_dir, values_of


async def test_a_small_append_ends_at_once(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads)

    info = appending.append(b"a", b"b")

    assert isinstance(info, AppendInfo)
    assert (info.base_offset, info.last_offset) == (0, 1)
    assert appending.reported == [0]
    assert not appending.appender.is_busy


async def test_a_failed_flush_without_appends_fails_its_future(tmp_path: Path, threads: DiskThreads) -> None:
    mishaps = [RuntimeError("unexpected")]

    def on_flush(_: float) -> None:
        if mishaps:
            raise mishaps.pop()

    log_dir = open_log_dir(tmp_path, on_flush=on_flush)
    appending = Appending(log_dir, threads, flush_ms=0)
    appending.append(b"a")

    flush = appending.appender.flush_if_due()
    assert flush is not None
    assert appending.appender.flush_if_due() is None
    with pytest.raises(RuntimeError, match="unexpected"):
        await flush

    assert not appending.appender.is_busy
    again = appending.appender.flush_if_due()
    assert again is not None
    await again
    assert appending.log.recovery_point == 1
    log_dir.close()


COMPACTED: dict[str, Any] = {"cleanup_policy": frozenset({"compact"})}


async def test_a_queued_append_fails_when_its_leader_epoch_is_over(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads)
    is_blocked = Event()
    blocking = appending.appender.run_between_appends(is_blocked.wait)
    queued = appending.append(b"a")
    assert isinstance(queued, asyncio.Future)

    appending.appender.leader_epoch = 1
    is_blocked.set()

    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        await queued
    assert await blocking
    assert appending.log.log_end_offset == 0
    assert isinstance(appending.appender.append_as_leader(batch(b"b"), 1, NOW), AppendInfo)


@pytest.mark.parametrize("properties", [COMPACTED, {"compression_type": "lz4"}, {"record_validation": "records"}])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.ZSTD])
async def test_a_small_append_that_expands_to_a_large_one_ends_later(
    log_dir: LogDir, threads: DiskThreads, codec: Codec, properties: dict[str, Any]
) -> None:
    appending = Appending(log_dir, threads, **properties)
    records = batch(LARGE, codec=codec)
    assert len(records) < LARGE_APPEND_BYTES

    future = appending.appender.append_as_leader(records, 0, NOW)

    assert isinstance(future, asyncio.Future)
    assert appending.reported == []
    assert (await future).base_offset == 0
    assert values_of(appending.log) == [LARGE]
    assert appending.reported == [0]


async def test_a_small_append_that_expands_to_a_large_one_ends_at_once_if_nothing_decodes_it(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    appending = Appending(log_dir, threads)
    assert isinstance(appending.appender.append_as_leader(batch(LARGE, codec=Codec.ZSTD), 0, NOW), AppendInfo)


@pytest.mark.parametrize("codec", Codec)
async def test_a_small_append_that_expands_a_little_ends_at_once(
    log_dir: LogDir, threads: DiskThreads, codec: Codec
) -> None:
    appending = Appending(log_dir, threads, **COMPACTED)
    assert isinstance(
        appending.appender.append_as_leader(batch(LARGE[: MOST_DECODED_BYTES - 100], codec=codec), 0, NOW), AppendInfo
    )


async def test_a_small_append_that_expands_too_far_fails_its_future(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads, **COMPACTED)
    future = appending.appender.append_as_leader(batch(bytes(128 << 20), codec=Codec.ZSTD), 0, NOW)
    assert isinstance(future, asyncio.Future)
    with pytest.raises(KafkaError) as caught:
        await future
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert not appending.appender.is_busy


async def test_small_appends_that_are_decoded_end_later_when_those_of_one_turn_have_many_records(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    logs = [log_dir.create_log(name, 0, TOPIC_ID, LogConfig(**COMPACTED)) for name in ("t", "u", "v")]
    appenders = [LogAppender(log, threads, lambda info: None) for log in logs]
    for appender in appenders:
        appender.leader_epoch = 0
    values = [b""] * (DECODED_IN_A_TURN // 2)

    def append(appender: LogAppender) -> AppendInfo | asyncio.Future[AppendInfo]:
        return appender.append_as_leader(batch(*values, codec=Codec.ZSTD), 0, NOW)

    first, second, third = map(append, appenders)
    assert isinstance(first, AppendInfo)
    assert isinstance(second, asyncio.Future)
    assert isinstance(third, asyncio.Future)
    await asyncio.gather(second, third)

    assert isinstance(append(appenders[0]), AppendInfo)


async def test_small_appends_of_coordinators_end_at_once_however_many_there_are_in_a_turn(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    appending = Appending(log_dir, threads, **COMPACTED)
    batches = [
        appending.appender.append_as_leader(batch(b"v"), 0, NOW, Origin.COORDINATOR)
        for _ in range(DECODED_IN_A_TURN // 100)
    ]
    assert all(isinstance(each, AppendInfo) for each in batches)


async def test_a_large_append_ends_later(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads)

    future = appending.append(LARGE)
    assert isinstance(future, asyncio.Future)
    assert appending.reported == []
    assert appending.appender.is_busy

    assert (await future).base_offset == 0
    assert appending.reported == [0]
    assert not appending.appender.is_busy


@pytest.mark.parametrize(
    ("properties", "later"),
    [
        ({"segment_bytes": LARGE_APPEND_BYTES + 500}, 0),
        ({"segment_ms": 1000}, 1000),
        ({"segment_index_bytes": 12, "index_interval_bytes": 0}, 0),
    ],
    ids=["by size", "by time", "by a full index"],
)
async def test_a_log_of_many_producers_is_rolled_on_a_thread(
    log_dir: LogDir, threads: DiskThreads, properties: dict[str, int], later: int
) -> None:
    """A roll writes the producers down, which takes a second for a million of them."""
    appending = Appending(log_dir, threads, segment_jitter_ms=0, **properties)
    log = appending.log
    crowd(log, CROWD + 1)

    def append(timestamp: int) -> AppendInfo | asyncio.Future[AppendInfo]:
        data = batch(b"v" * 300, timestamp=timestamp, producer_id=1 << 20, producer_epoch=0, base_sequence=0)
        return appending.appender.append_as_leader(data, 0, NOW)

    assert isinstance(append(NOW), AppendInfo)
    assert isinstance(appending.append(b"v" * 300), AppendInfo)
    rolled = appending.appender.append_as_leader(batch(b"v" * 300, timestamp=NOW + later + 1), 0, NOW)
    assert isinstance(rolled, asyncio.Future)
    await rolled

    assert log.segments_count == (1 if "segment_bytes" in properties else 2), "64 KiB before it, it may be"
    assert values_of(log) == [b"v" * 300] * 3


async def test_appends_continue_while_many_producers_are_written(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads, segment_bytes=1000)
    log = appending.log
    crowd(log, 20_000)
    producers = range(1 << 20, (1 << 20) + 20)

    def append(producer_id: int) -> AppendInfo | asyncio.Future[AppendInfo]:
        data = batch(b"v" * 300, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        return appending.appender.append_as_leader(data, 0, NOW)

    appended = [append(producer_id) for producer_id in producers]
    assert all(isinstance(each, asyncio.Future) for each in appended)
    await asyncio.gather(*appended)  # type: ignore[arg-type]

    assert log.segments_count == 10
    for path in log.directory.glob("*.snapshot"):
        known = {entry.producer_id for entry in decode_snapshot(path.read_bytes())}
        assert known == {*range(20_000), *producers[: int(path.stem)]}, "no later one"


async def test_appends_after_a_large_one_stay_after_it(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads)

    futures = [appending.append(value) for value in (LARGE, b"b", LARGE, b"d")]
    assert all(isinstance(future, asyncio.Future) for future in futures)
    await asyncio.gather(*futures)  # type: ignore[arg-type]

    assert values_of(appending.log) == [LARGE, b"b", LARGE, b"d"]
    assert appending.reported == [0, 1, 2, 3]
    assert isinstance(appending.append(b"e"), AppendInfo)


async def test_appends_wait_for_an_append_whose_caller_was_cancelled(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads)
    go_on = Event()

    given_up = appending.appender.run_between_appends(go_on.wait)
    given_up.cancel()
    await asyncio.wait({given_up})
    future = appending.append(b"a")
    go_on.set()

    assert isinstance(future, asyncio.Future)
    assert (await future).base_offset == 0


async def test_a_log_stays_with_its_writer_while_another_is_free(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads)
    go_on = Event()

    held_up = appending.appender.run_between_appends(go_on.wait)
    futures = [appending.append(value) for value in (LARGE, b"b")]
    await threads.least_busy_writer().run(int)  # a writer that has nothing to do, and might have taken them
    assert appending.log.log_end_offset == 0
    go_on.set()
    await asyncio.gather(held_up, *futures)

    assert values_of(appending.log) == [LARGE, b"b"]


@pytest.mark.parametrize("is_queued", [False, True])
async def test_a_marker_carries_its_origin_and_its_transaction_version(
    log_dir: LogDir, threads: DiskThreads, is_queued: bool
) -> None:
    appending = Appending(log_dir, threads)
    appending.appender.append_as_leader(
        batch(b"a", producer_id=9, producer_epoch=3, base_sequence=0, is_transactional=True), 0, NOW
    )

    async def end(epoch: int, *origin: Any) -> AppendInfo:
        waiting = appending.append(LARGE) if is_queued else None
        appended = appending.appender.append_as_leader(marker(9, epoch, commit=True), 0, NOW, *origin)
        assert isinstance(appended, asyncio.Future) is is_queued
        if isinstance(waiting, asyncio.Future):
            await waiting
        return await appended if isinstance(appended, asyncio.Future) else appended

    with pytest.raises(KafkaError, match="INVALID_RECORD"):
        await end(4)
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        await end(3, Origin.COORDINATOR, 2)
    assert appending.log.last_stable_offset == 0
    await end(4, Origin.COORDINATOR, 2)
    assert appending.log.last_stable_offset == appending.log.log_end_offset


async def test_a_refused_small_append_raises_and_reports_nothing(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads, max_message_bytes=100)

    with pytest.raises(KafkaError) as raised:
        appending.append(b"x" * 200)

    assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert appending.reported == []


async def test_a_refused_large_append_fails_its_future_and_blocks_no_other(
    log_dir: LogDir, threads: DiskThreads
) -> None:
    appending = Appending(log_dir, threads, max_message_bytes=100)

    refused, taken = appending.append(LARGE), appending.append(b"b")
    assert isinstance(refused, asyncio.Future)
    assert isinstance(taken, asyncio.Future)

    with pytest.raises(KafkaError):
        await refused
    assert (await taken).base_offset == 0
    assert appending.reported == [0]


async def test_an_append_continues_after_its_caller_was_cancelled(log_dir: LogDir, threads: DiskThreads) -> None:
    appending = Appending(log_dir, threads)

    future = appending.append(LARGE)
    assert isinstance(future, asyncio.Future)
    future.cancel()
    await appending.appender.drained()

    assert appending.reported == [0]
    assert appending.log.log_end_offset == 1
