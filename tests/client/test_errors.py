"""The exception tree: its drawing in the docstring, and its messages."""

from __future__ import annotations

import re

from odradek import client
from odradek.client import errors
from odradek.client.errors import BrokerError, ClientError, UnknownTopicError, broker_error
from odradek.protocol.errors import ErrorCode


def tree() -> dict[str, tuple[str, str]]:
    """Name to parent and retriability, in the drawing of the module's docstring."""
    drawn: dict[str, tuple[str, str]] = {}
    parents: list[str] = []
    for line in (errors.__doc__ or "").split("```")[1].strip().splitlines():
        match = re.match(r"((?:[│ ]   )*)(?:[├└]── )?(\w+)(?:\s+(yes|no)\b)?", line)
        assert match is not None, line
        depth = len(match[1]) // 4 + ("──" in line)
        parents[depth:] = [match[2]]
        drawn[match[2]] = (parents[depth - 1] if depth else "Exception", match[3] or "")
    return drawn


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = tree()
    classes = {
        name: cls for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, ClientError)
    }
    assert drawn.keys() == classes.keys()
    for name, (parent, retriable) in drawn.items():
        assert classes[name].__bases__[0].__name__ == parent, name
        if retriable:
            assert classes[name].retriable is (retriable == "yes"), name


def test_the_whole_tree_is_public() -> None:
    assert tree().keys() <= set(client.__all__)
    assert all(getattr(client, name) is not None for name in client.__all__)


def test_a_code_chooses_class_and_retriability() -> None:
    error = broker_error(3, "fetch", broker="b:1 (broker 1)", topic="t", partition=2)
    assert type(error) is UnknownTopicError
    assert error.retriable
    assert type(broker_error(42, "fetch")) is BrokerError
    assert not broker_error(42, "fetch").retriable


def test_a_message_has_operation_place_cause_and_cure() -> None:
    error = broker_error(3, "fetch", broker="b:1 (broker 1)", topic="t", partition=2)
    assert str(error) == (
        "fetch on t-2 at b:1 (broker 1): UNKNOWN_TOPIC_OR_PARTITION. "
        "Check the names of topic and partition, or create the topic"
    )


def test_an_unknown_code_is_a_number_in_the_message() -> None:
    error = broker_error(1234, "fetch", "something new")
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "error code 1234, unknown to this client: something new" in str(error)
