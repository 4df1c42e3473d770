"""The benchmark's load generator: its counts equal the stored records, and errors do not count as speed."""

from __future__ import annotations

import pytest

from benchmarks.side_by_side import load
from tests.peers.clients.confluent import Confluent
from tests.peers.server import Server


def test_a_load_counts_successful_requests(server: Server, topic: str) -> None:
    frame = load.produce_frame(topic, [0], load.batch(1, 100))
    sample = load.run(server.port, [frame], connections=4, in_flight=2, seconds=0.3)
    _, end = Confluent().offsets(server.bootstrap, topic)
    asked_first, still_in_flight = 1, 4 * 2
    assert 0 <= end - asked_first - sample["requests"] <= still_in_flight
    assert 0 < sample["p50_us"] <= sample["p99_us"]


def test_a_paced_load_keeps_its_rate(server: Server, topic: str) -> None:
    frame = load.produce_frame(topic, [0], load.batch(1, 100))
    sample = load.run(server.port, [frame], connections=2, in_flight=8, seconds=1, rate=200)
    assert sample["requests"] <= 201


def test_a_waiting_fetch_is_completed_once_for_each_record(server: Server, topic: str) -> None:
    fetch = load.fetch_frame(topic, [0], 1 << 20, load.OFFSET_MARK)
    produce = load.produce_frame(topic, [0], load.batch(1, 100))
    sample = load.wake(server.port, fetch, produce, next_offset=0, rounds=20)
    assert Confluent().offsets(server.bootstrap, topic) == (0, 20)
    assert sample["p50_us"] > 0


def test_a_walk_reads_the_whole_log(server: Server, topic: str) -> None:
    batch = load.batch(1, 100)
    load.repeat(server.port, load.produce_frame(topic, [0], batch), 4)
    within = [load.fetch_frame(topic, [0], len(batch), offset) for offset in range(4)]
    load.run(server.port, within, connections=2, in_flight=1, seconds=0.1, walk=True)
    beyond = [*within, load.fetch_frame(topic, [0], len(batch), 5)]
    with pytest.raises(RuntimeError, match="another length"):
        load.run(server.port, beyond, connections=2, in_flight=1, seconds=0.1, walk=True)


def test_an_error_code_is_an_error(server: Server, topic: str) -> None:
    damaged = bytearray(load.batch(1, 100))
    damaged[-1] ^= 1
    with pytest.raises(RuntimeError, match="errors"):
        load.run(server.port, [load.produce_frame(topic, [0], bytes(damaged))], connections=1, in_flight=1, seconds=0.1)


def test_a_response_that_differs_from_the_first_is_an_error(server: Server, topic: str) -> None:
    frame = load.produce_frame(topic, [0], load.batch(1, 100))
    with (
        load.Load(server.port, [frame], 1, 1, 0.1, 0, 4, 0, 1) as wrong,
        pytest.raises(RuntimeError, match="another length"),
    ):
        wrong.result(30)
