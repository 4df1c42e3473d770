"""Records of TLS that are split, joined and spoilt anyhow: the same answers as to whole ones, or the end."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable, Iterator

import pytest

from tests.effort import cases
from tests.security.raw.guarded import (
    METADATA,
    Guarded,
    Session,
    half_close,
    plain,
    plain_in_bare_tokens,
    play,
    scram,
    tls_context,
)
from tests.server.tls_client import TlsClient, whole

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]

pytestmark = pytest.mark.parametrize("version", VERSIONS, ids=["1.2", "1.3"])


class SmallRecords(TlsClient):
    """Sends few bytes in a record, and all records of a frame in one write, which `pieces` may cut."""

    size = 1

    async def send(self, data: bytes, record: int = 0) -> None:
        await super().send(data, record or self.size)


def bytewise(data: bytes) -> Iterator[bytes]:
    for position in range(len(data)):
        yield data[position : position + 1]


def anyhow(seed: int) -> Callable[[bytes], Iterator[bytes]]:
    """Cut at random places; often within the five bytes of a record's header."""
    source = random.Random(seed)

    def pieces(data: bytes) -> Iterator[bytes]:
        position = 0
        while position < len(data):
            size = source.choice([1, 2, 3, 4, 5, 6, 21, 22, 100, 1000])
            yield data[position : position + size]
            position += size

    return pieces


@pytest.mark.parametrize(("session", "kind"), [(plain_in_bare_tokens, TlsClient), (plain, SmallRecords)])
async def test_however_records_are_split_the_answers_are_the_same(
    guarded: Guarded, version: ssl.TLSVersion, session: Callable[[], Session], kind: type[TlsClient]
) -> None:
    expected = await play(await (await guarded.tls(version=version)).handshake(), session())
    for pieces in (bytewise, *map(anyhow, range(cases(5)))):
        tls = await (await guarded.tls(pieces, version, kind)).handshake()
        assert await play(tls, session()) == expected
        tls.client.close()
    await guarded.alone(1)


async def test_scram_works_however_records_are_split(guarded: Guarded, version: ssl.TLSVersion) -> None:
    for pieces in (bytewise, *map(anyhow, range(cases(5)))):
        tls = await (await guarded.tls(pieces, version, SmallRecords)).handshake()
        assert len(await play(tls, scram())) == 5


async def test_records_of_every_size_joined_in_one_write(guarded: Guarded, version: ssl.TLSVersion) -> None:
    stream = b"".join(plain())
    for size in (*range(1, 40, 3), len(stream)):
        tls = await (await guarded.tls(version=version)).handshake()
        await tls.send(stream, size)
        assert [await tls.receive_frame() for _ in range(4)]
        tls.client.close()


async def test_requests_joined_with_the_end_of_the_handshake_are_answered(
    guarded: Guarded, version: ssl.TLSVersion
) -> None:
    """In TLS 1.2 the client sends the end of the handshake only if it resumes a session."""
    context, session = tls_context(version), None
    if version is ssl.TLSVersion.TLSv1_2:
        first = await (await guarded.tls(context=context)).handshake()
        await play(first, plain())
        session = first.tls.session
        first.client.close()
    for pieces in (bytewise, anyhow(1), anyhow(2), whole):
        for more in (0, 20 if pieces is bytewise else 2000):
            stream = b"".join(plain()) + METADATA * more
            tls = await guarded.tls(pieces, context=context, session=session)
            tls.early = stream
            await tls.handshake()
            assert tls.tls.session_reused is (session is not None)
            for _ in range(stream.count(METADATA[4:])):
                await tls.receive_frame()
            tls.client.close()


SPOILT = {
    "an empty record that is not encrypted": b"\x17\x03\x03\x00\x00",
    "a record of zeros": b"\x17\x03\x03\x00\x20" + bytes(32),
    "a record that is too long": b"\x17\x03\x03\xff\xff" + bytes(0xFFFF),
    "an unknown type": b"\x99\x03\x03\x00\x01\x00",
    "an unknown version": b"\x17\x09\x09\x00\x01\x00",
    "a fatal alert in the clear": b"\x15\x03\x03\x00\x02\x02\x28",
    "a ClientHello in the clear": b"\x16\x03\x03\x00\x04\x01\x00\x00\x00",
    "a KeyUpdate in the clear": b"\x16\x03\x03\x00\x05\x18\x00\x00\x01\x01",
    "a request in the clear": METADATA,
    "a change of the cipher, again and again": b"\x14\x03\x03\x00\x01\x01" * 100,
    "text": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("name", SPOILT)
async def test_a_spoilt_record_ends_the_connection_after_the_requests_before_it(
    guarded: Guarded, version: ssl.TLSVersion, name: str
) -> None:
    for pieces in (bytewise, anyhow(7)):
        tls = await (await guarded.tls(version=version)).handshake()
        await play(tls, plain())
        await tls.send(METADATA)
        await tls.receive_frame()
        for piece in pieces(SPOILT[name][:2000] if pieces is bytewise else SPOILT[name]):
            try:
                await tls.client.send(piece)
            except ConnectionError:
                break
        half_close_if_open(tls)
        with pytest.raises((EOFError, OSError)):
            await tls.receive_frame()
        tls.client.close()
    await guarded.alone()


def half_close_if_open(tls: TlsClient) -> None:
    try:
        half_close(tls.client)
    except OSError:
        pass  # the broker has reset the connection


async def test_one_changed_bit_ends_the_connection(guarded: Guarded, version: ssl.TLSVersion) -> None:
    source, is_spoilt = random.Random(9), False

    def spoil(data: bytes) -> Iterator[bytes]:
        if not is_spoilt:
            yield data
            return
        changed = bytearray(data)
        changed[source.randrange(5, len(data))] ^= 1 << source.randrange(8)
        yield bytes(changed)

    for _ in range(cases(50)):
        is_spoilt = False
        tls = await (await guarded.tls(spoil, version)).handshake()
        await play(tls, plain())
        is_spoilt = True
        await tls.send(METADATA)
        with pytest.raises((EOFError, OSError)):
            await tls.receive_frame()
        tls.client.close()
    await guarded.alone()


async def test_a_notice_of_closing_in_the_middle_of_a_request(guarded: Guarded, version: ssl.TLSVersion) -> None:
    for cut in range(0, len(METADATA), 3):
        tls = await (await guarded.tls(version=version)).handshake()
        await play(tls, plain())
        await tls.send(METADATA + METADATA[:cut])
        with pytest.raises(ssl.SSLWantReadError):
            tls.tls.unwrap()
        await tls.flush()
        await guarded.until(lambda: len(guarded.connections) == 1)
        tls.client.close()
    await guarded.alone()
