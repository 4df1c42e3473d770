from __future__ import annotations

from typing import Any

from odradek.broker.explain.events import Exchange, FileOperation, RequestAnswered, RequestReceived
from odradek.broker.explain.repetitions import Repetitions


class Client:
    """Sends requests over one connection, and collects what is printed."""

    def __init__(self, repetitions: Repetitions, port: int = 1) -> None:
        self.repetitions = repetitions
        self.port = port

    def received(self, number: int, **fields: Any) -> tuple[Exchange, list[str]]:
        exchange = Exchange(number, 0, ("h", self.port), None, "Fetch", 12, number)
        return exchange, self.repetitions.lines(RequestReceived(exchange, fields, 0))

    def exchange(self, number: int, answer: int = 0, **fields: Any) -> int:
        """Return how many lines a request and its answer are."""
        exchange, lines = self.received(number, **fields)
        exchange.seconds = 0.5
        return len(lines + self.repetitions.lines(RequestAnswered(exchange, 0, {"offset": answer}, 0)))


def test_an_equal_request_with_an_equal_answer_is_not_printed() -> None:
    client = Client(Repetitions())
    first = client.exchange(1, partition=3, session_epoch=1)

    assert first == 4
    assert client.exchange(2, partition=3, session_epoch=2) == 0


def test_the_repetitions_are_counted_before_the_next_other_request() -> None:
    client = Client(Repetitions())
    for number in (1, 2, 3):
        client.exchange(number)

    _, lines = client.received(4, partition=7)

    assert lines[0].strip() == "… Fetch #1 and its answer were repeated 2 times"
    assert "#4" in lines[1]


def test_the_repetitions_are_counted_at_the_end() -> None:
    client = Client(Repetitions())
    for number in (1, 2):
        client.exchange(number)

    assert [line.strip() for line in client.repetitions.rest()] == ["… Fetch #1 and its answer were repeated 1 time"]


def test_an_equal_request_with_another_answer_is_printed() -> None:
    client = Client(Repetitions())
    first = client.exchange(1, partition=3)

    assert client.exchange(2, answer=5, partition=3) == first


def test_a_request_that_causes_something_is_printed_before_that() -> None:
    client = Client(Repetitions())
    client.exchange(1)
    _, held = client.received(2)

    lines = client.repetitions.lines(FileOperation(0, 2, "fsync", "a"))

    assert held == []
    assert ["Fetch" in lines[0], "fsync" in lines[1]] == [True, True]


def test_connections_do_not_repeat_each_other() -> None:
    repetitions = Repetitions()
    first = Client(repetitions, 1).exchange(1)

    assert Client(repetitions, 2).exchange(2) == first


def test_only_api_versions_is_the_same_for_all_connections() -> None:
    repetitions = Repetitions()
    lines = []
    for number in (1, 2):
        exchange = Exchange(number, 0, ("h", number), None, "ApiVersions", 3, 1, seconds=0.5)
        lines += repetitions.lines(RequestReceived(exchange, {}, 0))
        lines += repetitions.lines(RequestAnswered(exchange, 0, {"finalized_features_epoch": number}, 0))

    assert [line.count("#1") for line in lines if "ApiVersions" in line] == [1, 1]
