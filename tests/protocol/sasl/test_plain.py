from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.sasl.plain import SaslMechanismPlain

from odradek.protocol.sasl.errors import SaslMessageError
from odradek.protocol.sasl.plain import MAXIMUM_MESSAGE_BYTES, PlainMessage

values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (b"\0tim\0tanstaaftanstaaf", PlainMessage("tim", "tanstaaftanstaaf")),
        (b"Ursel\0Kurt\0xipj3plmq", PlainMessage("Kurt", "xipj3plmq", "Ursel")),
    ],
    ids=["without an authorization id", "with one"],
)
def test_the_examples_of_rfc_4616(message: bytes, value: PlainMessage) -> None:
    assert PlainMessage.decode(message) == value
    assert value.encode() == message


def test_the_message_of_kafka_python() -> None:
    client = SaslMechanismPlain(
        sasl_plain_username="alice", sasl_plain_password="päss,=", security_protocol="SASL_SSL", sasl_mechanism="PLAIN"
    )
    message = PlainMessage.decode(client.auth_bytes())
    assert (message.username, message.password) == ("alice", "päss,=")


@given(values, values, st.just("") | values)
def test_every_message_survives_the_wire(username: str, password: str, authorization_id: str) -> None:
    message = PlainMessage(username, password, authorization_id)
    assert PlainMessage.decode(message.encode()) == message


@given(st.binary(max_size=60))
def test_what_is_not_refused_encodes_to_the_same_bytes(message: bytes) -> None:
    try:
        decoded = PlainMessage.decode(message)
    except SaslMessageError:
        return
    assert decoded.encode() == message


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 1000, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0al\xffice\0secret", "not UTF-8"),
        (b"\0alice\0" + b"x" * MAXIMUM_MESSAGE_BYTES, "limit"),
        (b"\0alice\0" + b"x" * 8 * 1024 * 1024, "limit"),
    ],
    ids=range(10),
)
def test_a_message_is_refused(message: bytes, error: str) -> None:
    with pytest.raises(SaslMessageError, match=error) as raised:
        PlainMessage.decode(message)
    assert "secret" not in str(raised.value)


def test_the_repr_shows_nothing() -> None:
    assert "secret" not in repr(PlainMessage("alice", "secret"))


@pytest.mark.parametrize("values", [("", "secret"), ("alice", ""), ("al\0ice", "secret"), ("alice", "sec\0ret")])
def test_a_message_that_a_server_would_misunderstand_cannot_be_sent(values: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="PLAIN needs"):
        PlainMessage(*values).encode()
