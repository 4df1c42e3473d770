from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.sasl.oauth import AbstractTokenProvider, SaslMechanismOAuth

from odradek.protocol.sasl.errors import SaslMessageError
from odradek.protocol.sasl.oauthbearer import MAXIMUM_MESSAGE_BYTES, ClientInitialResponse, TokenRefusal

TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
names = st.text(st.characters(exclude_characters="\0\x01", exclude_categories=["Cs"]), min_size=1, max_size=20)
values = st.text("abc =,\t\r\n!~", min_size=1, max_size=20)
keys = st.text("abcxyzABC", min_size=1, max_size=8)


def test_the_example_of_rfc_7628() -> None:
    message = (
        "n,a=user@example.com,\x01host=server.example.com\x01port=143\x01"
        f"auth=Bearer {TOKEN}\x01\x01"
    ).encode()  # fmt: skip
    assert ClientInitialResponse.decode(message) == ClientInitialResponse(
        TOKEN, "user@example.com", (("host", "server.example.com"), ("port", "143"))
    )


@pytest.mark.parametrize("extensions", [{}, {"logicalCluster": "lkc-1", "identityPoolId": "pool 1"}])
def test_the_message_of_kafka_python(extensions: dict[str, str]) -> None:
    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return TOKEN

        def extensions(self) -> dict[str, str]:
            return extensions

    message = SaslMechanismOAuth(sasl_oauth_token_provider=Provider()).auth_bytes()
    decoded = ClientInitialResponse.decode(message)
    assert decoded == ClientInitialResponse(TOKEN, "", tuple(extensions.items()))
    assert decoded.encode() == message


@given(
    st.from_regex(r"[-._~+/A-Za-z0-9]{1,40}={0,2}", fullmatch=True),
    st.just("") | names,
    st.dictionaries(keys, values, max_size=3),
)
def test_every_message_survives_the_wire(token: str, authorization_id: str, extensions: dict[str, str]) -> None:
    extensions.pop("auth", None)
    message = ClientInitialResponse(token, authorization_id, tuple(extensions.items()))
    assert ClientInitialResponse.decode(message.encode()) == message


def test_every_prefix_is_refused() -> None:
    message = ClientInitialResponse(TOKEN, "alice", (("traceId", "123"),)).encode()
    for end in range(len(message)):
        with pytest.raises(SaslMessageError):
            ClientInitialResponse.decode(message[:end])


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a\nb\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearerabc\x01\x01",
        b"n,,\x01host=example.com\x01\x01",
        b"n,,\x01auth=Bearer abc\x01auth=Bearer def\x01\x01",
        b"n,,\x01auth=Bearer abc\x01a=b\x01a=c\x01\x01",
        b"n,,\x01auth=Bearer abc\x01a-b=c\x01\x01",
        b"n,,\x01auth=Bearer abc\x01a=\x01\x01",
        b"n,,\x01auth=Bearer abc\x01\x01\x01",
        b"n,,\x01auth=Bearer abc\x01a=\xff\x01\x01",
        b"n,,auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01\x01more",
        b"p=tls-unique,,\x01auth=Bearer abc\x01\x01",
        b"n,a=,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc" + b"d" * MAXIMUM_MESSAGE_BYTES + b"\x01\x01",
        b"n,,\x01auth=Bearer abc" + b"d" * 8 * 1024 * 1024 + b"\x01\x01",
    ],
    ids=range(22),
)
def test_a_message_is_refused_and_not_quoted(message: bytes) -> None:
    with pytest.raises(SaslMessageError) as raised:
        ClientInitialResponse.decode(message)
    assert "abc" not in str(raised.value)


def test_the_scheme_may_have_any_case_and_several_spaces() -> None:
    assert ClientInitialResponse.decode(b"n,,\x01auth=bEARER   abc\x01\x01").token == "abc"


def test_the_repr_shows_nothing() -> None:
    assert TOKEN not in repr(ClientInitialResponse(TOKEN))


@pytest.mark.parametrize(
    "message",
    [
        ClientInitialResponse(""),
        ClientInitialResponse("a b"),
        ClientInitialResponse("a\x01b"),
        ClientInitialResponse("abc", "", (("auth", "Bearer def"),)),
        ClientInitialResponse("abc", "", (("a1", "b"),)),
        ClientInitialResponse("abc", "", (("a", ""),)),
        ClientInitialResponse("abc", "", (("a", "b\x01"),)),
    ],
    ids=range(7),
)
def test_a_message_that_a_server_would_misunderstand_cannot_be_sent(message: ClientInitialResponse) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        message.encode()
    assert not isinstance(raised.value, SaslMessageError)


def test_a_refusal_is_what_kafka_sends() -> None:
    assert TokenRefusal("invalid_token").encode() == b'{"status":"invalid_token"}'


def test_the_refusal_of_rfc_7628() -> None:
    message = (
        b'{"status":"invalid_token","scope":"example_scope",'
        b'"openid-configuration":"https://example.com/.well-known/openid-configuration"}'
    )
    refusal = TokenRefusal("invalid_token", "example_scope", "https://example.com/.well-known/openid-configuration")
    assert TokenRefusal.decode(message) == refusal
    assert refusal.encode() == message


def test_a_refusal_keeps_its_form_whatever_its_values_are() -> None:
    refusal = TokenRefusal("invalid_token", 'a"}{')
    assert TokenRefusal.decode(refusal.encode()) == refusal


@pytest.mark.parametrize("message", [b"", b"no", b"[]", b"{}", b'{"status":1}', b"\xff"])
def test_a_refusal_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(SaslMessageError):
        TokenRefusal.decode(message)
