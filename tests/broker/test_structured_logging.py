from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from odradek.broker import structured_logging
from odradek.broker.structured_logging import StructuredLogger


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(style: structured_logging.Style, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    structured_logging.configure(level, style, stream)
    return stream


@pytest.mark.usefixtures("restored_logging")
class TestConfigured:
    def test_a_human_line_has_time_level_logger_event_and_fields(self) -> None:
        stream = logged("human")
        StructuredLogger("odradek.broker.server").warning(
            "connection closed", peer=("::1", 9092), reason="frame size is -1", n=3
        )
        date, time, rest = stream.getvalue().split(" ", 2)
        assert len(date) == 10
        assert len(time) == 12
        assert rest == 'WARNING odradek.broker.server connection closed peer=[::1]:9092 reason="frame size is -1" n=3\n'

    def test_a_json_line_has_the_same_fields(self) -> None:
        stream = logged("json")
        StructuredLogger("odradek.broker.server").warning(
            "connection closed", peer=("h", 1), reason="frame size is -1", n=3
        )
        line = json.loads(stream.getvalue())
        assert line.pop("time")
        assert line == {
            "level": "warning",
            "logger": "odradek.broker.server",
            "event": "connection closed",
            "peer": "h:1",
            "reason": "frame size is -1",
            "n": 3,
        }

    @pytest.mark.parametrize("style", ["human", "json"])
    def test_input_of_a_client_cannot_break_a_line(self, style: structured_logging.Style) -> None:
        stream = logged(style)
        StructuredLogger("x").info("request", client_id='evil\nINFO all is well "level"=1\x1b[2J\u2028')
        assert stream.getvalue().count("\n") == 1
        assert stream.getvalue().rstrip("\n").isprintable()

    def test_a_traceback_is_a_field_in_json_and_follows_a_human_line(self) -> None:
        try:
            int("one")
        except ValueError as error:
            stream = logged("json")
            StructuredLogger("x").exception("request failed", error, api="Fetch")
            assert "ValueError" in json.loads(stream.getvalue())["traceback"]
            stream = logged("human")
            StructuredLogger("x").exception("request failed", error, api="Fetch")
        first, second, *_, last = stream.getvalue().splitlines()
        assert first.endswith("request failed api=Fetch")
        assert second == "Traceback (most recent call last):"
        assert last == "ValueError: invalid literal for int() with base 10: 'one'"

    def test_ordinary_log_calls_are_events_without_fields(self) -> None:
        stream = logged("json")
        logging.getLogger("asyncio").warning("took %s seconds", 3)
        assert json.loads(stream.getvalue())["event"] == "took 3 seconds"

    def test_events_below_the_level_are_not_written(self) -> None:
        stream = logged("human", "warning")
        log = StructuredLogger("x")
        log.info("nothing")
        assert not log.enabled_for(logging.INFO)
        assert stream.getvalue() == ""


def test_bound_fields_come_with_every_event(caplog: pytest.LogCaptureFixture) -> None:
    log = StructuredLogger("x").bind(node_id=1)
    log.bind(topic="t").warning("event", offset=5)
    log.warning("other")
    assert [record.getMessage() for record in caplog.records] == ["event node_id=1 topic=t offset=5", "other node_id=1"]


def test_an_event_is_attributed_to_the_line_that_logged_it(caplog: pytest.LogCaptureFixture) -> None:
    StructuredLogger("x").warning("event")
    assert caplog.records[0].filename == "test_structured_logging.py"
