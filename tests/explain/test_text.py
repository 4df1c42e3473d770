from __future__ import annotations

import pytest

from odradek.broker.explain.copying import MessageCopy
from odradek.broker.explain.events import (
    Exchange,
    FileOperation,
    GroupTransition,
    RequestAnswered,
    RequestReceived,
    TraceEvent,
    TransactionTransition,
)
from odradek.broker.explain.text import event_lines
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.schema import Message
from tests.handlers.requests import batch

TIME = 1_700_000_000_123
ANSWERED = Exchange(7, TIME, ("127.0.0.1", 50312), "rdkafka", "Produce", 9, 3, seconds=0.0006)
FAILED = Exchange(8, TIME, ("127.0.0.1", 50312), None, "Fetch", 12, 3, errors=("NOT_COORDINATOR",), seconds=0.1)


def received(message: Message, version: int) -> RequestReceived:
    return RequestReceived(ANSWERED, MessageCopy(message, version, {}.get).fields, 0)


def test_a_request_is_shown_with_its_records() -> None:
    data = [TopicProduceData("orders", partition_data=[PartitionProduceData(0, batch(b"a", b"b", b"c", b"d"))])]

    assert event_lines(received(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=data), 9)) == [
        '22:13:20.123   #7 Produce v9 from 127.0.0.1:50312 "rdkafka", correlation id 3',
        "                    acks=-1 timeout_ms=5000",
        '                    topic_data[0] name="orders"',
        "                      partition_data[0] index=0",
        "                        batch 97 bytes, offsets 0 to 3, 4 records, codec none, leader epoch -1, crc ok",
        '                          offset 0 key="k" value="a"',
        '                          offset 1 key="k" value="b"',
        '                          offset 2 key="k" value="c"',
        "                          … 1 more",
    ]


def test_long_lines_are_wrapped() -> None:
    brokers = [MetadataResponseBroker(1, "h" * 60, 9092, "r" * 60)]

    lines = event_lines(received(MetadataResponse(brokers=brokers, controller_id=1), 12))

    assert all(len(line) < 120 for line in lines)
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (RequestAnswered(ANSWERED, TIME, {}, 0), "22:13:20.123   #7 Produce answered after 0.6 ms"),
        (
            RequestAnswered(FAILED, TIME, None, 0),
            "22:13:20.123   #8 Fetch answered NOT_COORDINATOR after 100.0 ms",
        ),
        (
            GroupTransition(TIME, 7, "readers", "classic", ("Empty", "PreparingRebalance"), 0, 1, "a member joined"),
            '22:13:20.123   #7   group "readers": Empty → PreparingRebalance, generation 0, 1 member (a member joined)',
        ),
        (
            GroupTransition(TIME, None, "readers", "consumer", ("Stable", "none"), 4, 0, ""),
            '22:13:20.123        group "readers": Stable → none, epoch 4, 0 members',
        ),
        (
            TransactionTransition(TIME, 7, "x", ("Ongoing", "PrepareCommit"), 1000, 2, ("t-0", "t-1")),
            '22:13:20.123   #7   transactional id "x": Ongoing → PrepareCommit, producer id 1000 epoch 2, t-0, t-1',
        ),
        (FileOperation(TIME, 7, "write", "t-0/0.log", 4, 78), "22:13:20.123   #7   write t-0/0.log: 78 bytes at 4"),
        (
            FileOperation(TIME, 7, "truncate", "t-0/0.log", length=4),
            "22:13:20.123   #7   truncate t-0/0.log: to 4 bytes",
        ),
        (FileOperation(TIME, None, "rename", "a.tmp", target="a"), "22:13:20.123        rename a.tmp to a"),
        (
            FileOperation(TIME, None, "fsync", "a", error="Input/output error"),
            "22:13:20.123        fsync a failed: Input/output error",
        ),
    ],
)
def test_an_event_is_a_line(event: TraceEvent, line: str) -> None:
    assert event_lines(event) == [line]


def test_colours_surround_the_title() -> None:
    assert event_lines(FileOperation(TIME, None, "fsync", "a"), coloured=True) == [
        "22:13:20.123      \x1b[2m  fsync a\x1b[0m"
    ]


def test_what_is_empty_is_left_out() -> None:
    lines = event_lines(RequestReceived(ANSWERED, {"a": None, "b": [], "c": "", "throttle_time_ms": 0, "d": 0}, 0))

    assert lines[1:] == ["                    d=0"]
