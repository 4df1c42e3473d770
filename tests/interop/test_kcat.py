"""kcat, built on librdkafka 2.0, which chooses its features by the API versions of a broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.peers import kcat
from tests.peers.java import DUMP_LOG_SEGMENTS
from tests.peers.java import run as run_java
from tests.peers.server import Server

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("codec", CODECS)
def test_lines_are_read_back_with_every_codec(codec: str, bootstrap: str, topic: str) -> None:
    lines = [f"line {number} " + "abc" * 40 for number in range(500)]
    kcat.produce(bootstrap, topic, "\n".join(lines), "-z", codec)
    assert [record["payload"] for record in kcat.consume(bootstrap, topic, "-o", "beginning")] == lines


@pytest.mark.java
def test_batches_are_stored_in_the_codec_of_kcats_option(
    server: Server, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    """librdkafka 2.0 compresses only for brokers that serve Produce from version 0, and gives no error otherwise."""
    topics = {codec: make_topic() for codec in CODECS}
    for codec, topic in topics.items():
        kcat.produce(bootstrap, topic, "\n".join(["compressible " * 20] * 100), "-z", codec)
    logs = {codec: server.log_dir / f"{topic}-0" / f"{0:020}.log" for codec, topic in topics.items()}
    dumped = run_java(DUMP_LOG_SEGMENTS, "--files", ",".join(map(str, logs.values()))).stdout
    for codec, log in logs.items():
        [batches] = [part for part in dumped.split("Dumping ") if part.startswith(str(log))]
        assert f"compresscodec: {codec} " in batches


def test_keys_and_headers_survive(bootstrap: str, topic: str) -> None:
    kcat.produce(bootstrap, topic, "k1:v1\nk2:v2", "-K:", "-H", "trace=abc", "-H", "empty=", "-H", "null")
    received = kcat.consume(bootstrap, topic, "-o", "beginning")
    assert [(record["key"], record["payload"]) for record in received] == [("k1", "v1"), ("k2", "v2")]
    assert received[0]["headers"] == ["trace", "abc", "empty", "", "null", None]


def test_tombstones_and_null_keys_survive(bootstrap: str, topic: str) -> None:
    kcat.produce(bootstrap, topic, "k1:\n:v2\n:", "-K:", "-Z")
    received = kcat.consume(bootstrap, topic, "-o", "beginning")
    assert [(record["key"], record["payload"]) for record in received] == [("k1", None), (None, "v2"), (None, None)]


def test_a_file_becomes_one_record(bootstrap: str, topic: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = "several\nlines\n" * 1000
    file = tmp_path_factory.mktemp("kcat") / "message"
    file.write_text(text)
    kcat.run(bootstrap, "-P", "-t", topic, str(file))
    assert [record["payload"] for record in kcat.consume(bootstrap, topic, "-o", "beginning")] == [text]


def test_kcat_consumes_the_requested_range(bootstrap: str, topic: str) -> None:
    kcat.produce(bootstrap, topic, "\n".join(map(str, range(100))))

    def offsets(*arguments: str) -> list[int]:
        return [record["offset"] for record in kcat.consume(bootstrap, topic, *arguments)]

    assert offsets("-o", "beginning") == list(range(100))
    assert offsets("-o", "end") == []
    assert offsets("-o", "42") == list(range(42, 100))
    assert offsets("-o", "-10") == list(range(90, 100))
    assert offsets("-o", "beginning", "-c", "7") == list(range(7))


def test_timestamps_limit_the_range(bootstrap: str, topic: str) -> None:
    for line in ("early", "late"):
        kcat.produce(bootstrap, topic, line)  # two processes, so milliseconds apart
    [early, _] = kcat.consume(bootstrap, topic, "-o", "beginning")

    def lines(*bounds: str) -> list[str]:
        arguments = [argument for bound in bounds for argument in ("-o", bound)]
        return [record["payload"] for record in kcat.consume(bootstrap, topic, *arguments)]

    assert lines(f"s@{early['ts']}") == ["early", "late"]
    assert lines(f"s@{early['ts'] + 1}") == ["late"]
    assert lines(f"s@{early['ts']}", f"e@{early['ts'] + 1}") == ["early"]


def test_offsets_are_queried_by_time(bootstrap: str, topic: str) -> None:
    kcat.produce(bootstrap, topic, "one\ntwo\nthree")
    [first, *_] = kcat.consume(bootstrap, topic, "-o", "beginning")

    def query(timestamp: int) -> str:
        return kcat.run(bootstrap, "-Q", "-t", f"{topic}:0:{timestamp}").strip()

    assert query(-2) == f"{topic} [0] offset 0"
    assert query(-1) == f"{topic} [0] offset 3"
    assert query(first["ts"]) == f"{topic} [0] offset 0"
    assert query(first["ts"] + 86_400_000) == f"{topic} [0] offset -1"


def test_metadata_lists_brokers_topics_and_partitions(
    server: Server, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=3)
    listed = kcat.metadata(bootstrap)
    assert listed["brokers"] == [{"id": 1, "name": bootstrap}]
    assert listed["controllerid"] == 1
    [found] = [row for row in listed["topics"] if row["topic"] == topic]
    assert found["partitions"] == [
        {"partition": number, "leader": 1, "replicas": [{"id": 1}], "isrs": [{"id": 1}]} for number in range(3)
    ]


def test_an_idempotent_producer_is_accepted(bootstrap: str, topic: str) -> None:
    kcat.produce(bootstrap, topic, "\n".join(map(str, range(1000))), "-X", "enable.idempotence=true")
    assert [int(record["payload"]) for record in kcat.consume(bootstrap, topic, "-o", "beginning")] == list(range(1000))


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_each_level_of_acknowledgement_is_served(acks: str, bootstrap: str, topic: str) -> None:
    kcat.produce(bootstrap, topic, "a\nb\nc", "-X", f"acks={acks}")
    assert [record["payload"] for record in kcat.consume(bootstrap, topic, "-o", "beginning")] == ["a", "b", "c"]
