from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.explain.events import FileOperation
from odradek.broker.explain.printer import Printer
from odradek.broker.explain.text import event_lines


def event(path: str) -> FileOperation:
    return FileOperation(0, None, "fsync", path)


class Pipe:
    """A pipe whose both ends are closed at the end."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def close_reading(self) -> None:
        os.close(self.reading)
        self.reading = -1

    def fill(self) -> int:
        """Write until nothing more fits; return how much."""
        os.set_blocking(self.writing, False)
        written = 0
        try:
            while True:
                written += os.write(self.writing, b"x" * 65_536)
        except BlockingIOError:
            os.set_blocking(self.writing, True)
            return written

    def read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += os.read(self.reading, size - len(data))
        return data


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    for each in (pipe.reading, pipe.writing):
        if each >= 0:
            os.close(each)


def test_events_are_printed_in_order(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        printer = Printer(out.fileno())
        for name in ("a", "b"):
            printer(event(name))
        printer.close()

    assert (tmp_path / "out").read_text().splitlines() == [*event_lines(event("a")), *event_lines(event("b"))]


def test_events_beyond_the_bound_are_dropped_and_counted(pipe: Pipe) -> None:
    filled = pipe.fill()
    printer = Printer(pipe.writing, most_waiting=3)
    for index in range(20):
        printer(event(str(index)))  # the thread waits for the pipe with the first one, or has not begun

    pipe.read_exactly(filled)
    printer.close(60)

    os.close(pipe.writing)
    pipe.writing = -1
    with os.fdopen(pipe.reading, encoding="utf-8") as reader:
        pipe.reading = -1
        lines = reader.read().splitlines()
    [about] = [line for line in lines if "dropped" in line]
    assert about == f"… {20 - (len(lines) - 1)} events were dropped: the output is too slow"
    assert len(lines) - 1 in (3, 4)


def test_a_reader_that_is_gone_ends_the_printing(pipe: Pipe) -> None:
    pipe.close_reading()
    closed = threading.Event()
    printer = Printer(pipe.writing, on_closed=closed.set)

    printer(event("a"))

    assert closed.wait(60)
    printer(event("b"))
    printer.close(60)


def test_closing_does_not_wait_for_a_reader_that_stopped(pipe: Pipe) -> None:
    filled = pipe.fill()
    printer = Printer(pipe.writing)
    printer(event("a"))

    printer.close(0)

    assert len(pipe.read_exactly(filled)) == filled  # returned, although nothing had been read
    printer.close(60)


def test_a_pipe_that_does_not_block_is_waited_for(pipe: Pipe) -> None:
    filled = pipe.fill()
    os.set_blocking(pipe.writing, False)
    printer = Printer(pipe.writing)
    printer(event("a"))
    pipe.read_exactly(filled)
    printer.close(60)

    expected = f"{event_lines(event('a'))[0]}\n".encode()
    assert pipe.read_exactly(len(expected)) == expected
