from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.sasl.errors import SaslMessageError
from odradek.protocol.sasl.scram_messages import (
    MAXIMUM_MESSAGE_BYTES,
    ClientFinal,
    ClientFirst,
    ServerFinal,
    ServerFirst,
)

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40)
values = st.text(st.characters(exclude_characters="\0,", exclude_categories=["Cs"]), min_size=1, max_size=20)
nonces = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=","), min_size=1, max_size=40)
keys = st.text("abcxyzTK", min_size=2, max_size=8)
extensions = st.dictionaries(keys, values, max_size=3).map(lambda pairs: tuple(pairs.items()))
messages: st.SearchStrategy[Any] = st.one_of(
    st.builds(ClientFirst, names, nonces, st.just("") | names, extensions, st.sampled_from("ny")),
    st.builds(ServerFirst, nonces, st.binary(max_size=64), st.integers(1, 9_999_999_999), extensions),
    st.builds(ClientFinal, st.binary(min_size=3, max_size=30), nonces, st.binary(max_size=64), extensions),
    st.builds(ServerFinal, st.binary(min_size=1, max_size=64), st.just(""), extensions),
    st.builds(ServerFinal, st.just(b""), values, extensions),
)
decoders = pytest.mark.parametrize(
    "decode",
    [ClientFirst.decode, ServerFirst.decode, ClientFinal.decode, ServerFinal.decode],
    ids=["client-first", "server-first", "client-final", "server-final"],
)
Decode = Callable[[bytes], Any]


@given(messages)
def test_every_message_survives_the_wire(message: Any) -> None:
    assert type(message).decode(message.encode()) == message


@decoders
@given(st.data())
def test_what_is_not_refused_encodes_to_the_same_bytes(decode: Decode, data: st.DataObject) -> None:
    original = bytearray(data.draw(messages).encode())
    for _ in range(data.draw(st.integers(0, 3))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.sampled_from(b"nrmcpsiv=,aA0+/ \0\xff"))
    try:
        decoded = decode(bytes(original))
    except SaslMessageError:
        return
    assert decoded.encode() == original


VALID = [
    (ClientFirst.decode, b"n,a=bob,n=bob,r=abc,tokenauth=true"),
    (ServerFirst.decode, b"r=abcdef,s=QSXCR+Q6sek8bf92,i=4096"),
    (ClientFinal.decode, b"c=biws,r=abcdef,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="),
    (ServerFinal.decode, b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="),
]


@pytest.mark.parametrize(("decode", "message"), VALID)
def test_a_prefix_of_a_message_is_refused_or_a_message_of_its_own(decode: Decode, message: bytes) -> None:
    refused = 0
    for end in range(len(message)):
        try:
            assert decode(message[:end]).encode() == message[:end]
        except SaslMessageError:
            refused += 1
    assert refused > len(message) // 2


@pytest.mark.parametrize(
    "message",
    [
        b"p=tls-unique,,n=user,r=abc",  # channel binding is demanded
        b"x,,n=user,r=abc",
        b",,n=user,r=abc",
        b"n,user,n=user,r=abc",
        b"n,a=,n=user,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=us=2cer,r=abc",
        b"n,,n=user",
        b"n,,n=user,r=",
        b"n,,n=user,r=a c",
        b"n,,r=abc,n=user",
        b"n,,n=user,r=abc,",
        b"n,,n=user,r=abc,x",
        b"n,,n=user,r=abc,x=",
        b"n,,n=user,r=abc,1=2",
        b"n,,n=user,r=abc,n=root",
        b"n,,n=user,r=abc,tokenauth=true,tokenauth=false",
        b"n,,n=us\0er,r=abc",
        b"n,,n=us\xffer,r=abc",
        b"n,,m=mandatory,n=user,r=abc",
        b"n,,n=user,r=abc,m=mandatory",
        b"",
        b"\0user\0password",
    ],
)
def test_a_client_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(SaslMessageError):
        ClientFirst.decode(message)


@pytest.mark.parametrize(
    "message",
    [
        b"c=biws,r=abc",
        b"c=biws,r=abc,p",
        b"c=biws,p=AAAA,r=abc",
        b"c=biws,r=abc,p=AAA",  # base64 without its padding
        b"c=biws,r=abc,p=AB==",  # another text of the same value
        b"c=biws,r=abc,p=A\nA=",
        b"c=biws,r=abc,p=AAAA,x=y",
        b"c=bi-_,r=abc,p=AAAA",
        b"r=abc,c=biws,p=AAAA",
        b"m=x,c=biws,r=abc,p=AAAA",
        b"c=biws,r=abc,r=def,p=AAAA",
    ],
)
def test_a_client_final_message_is_refused(message: bytes) -> None:
    with pytest.raises(SaslMessageError):
        ClientFinal.decode(message)


@pytest.mark.parametrize("iterations", [b"", b"0", b"-1", b"04096", b"4096.0", b"4_096", "٤٠٩٦".encode(), b"9" * 11])
def test_iterations_that_are_no_positive_number_are_refused(iterations: bytes) -> None:
    with pytest.raises(SaslMessageError):
        ServerFirst.decode(b"r=abc,s=QSXCR+Q6sek8bf92,i=" + iterations)


@decoders
def test_a_message_over_the_limit_is_refused(decode: Decode) -> None:
    for size in (MAXIMUM_MESSAGE_BYTES + 1, 8 * 1024 * 1024):
        with pytest.raises(SaslMessageError, match="limit"):
            decode(b"n,,n=u,r=" + b"," * size)


def test_a_message_of_commas_within_the_limit_is_refused() -> None:
    with pytest.raises(SaslMessageError):
        ClientFirst.decode(b"n,,n=u,r=a".ljust(MAXIMUM_MESSAGE_BYTES, b","))


def test_a_refusal_quotes_nothing_of_the_message() -> None:
    with pytest.raises(SaslMessageError) as raised:
        ClientFinal.decode(b"c=biws,r=abc,p=c2VjcmV0!")
    assert "c2VjcmV0" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_the_repr_of_a_proof_shows_nothing() -> None:
    assert repr(ClientFinal(b"n,,", "nonce", b"proof")) == "ClientFinal(hidden)"


@pytest.mark.parametrize("message", [ServerFinal(), ServerFinal(b"x", "y"), ServerFinal(b"", "a,b")])
def test_a_final_message_with_neither_or_both_outcomes_cannot_be_sent(message: ServerFinal) -> None:
    with pytest.raises(ValueError, match="either"):
        message.encode()
