"""Every prefix of a correct session: nothing is left of it when its client has ended it, and others are served."""

from __future__ import annotations

import itertools
import random
import ssl
from collections.abc import Callable, Iterator

import pytest

from tests.effort import some
from tests.security.raw.guarded import (
    Guarded,
    Session,
    end,
    frames_in,
    half_close,
    plain,
    plain_in_bare_tokens,
    play,
    rest_of,
    scram,
    sizes_of,
    tls_context,
)
from tests.server.key_updates import send_key_update
from tests.server.serving import Client
from tests.server.tls_client import TlsClient

SESSIONS = [plain, plain_in_bare_tokens, scram]


async def length_of(guarded: Guarded, session: Callable[[], Session]) -> int:
    """The bytes that a client sends in a whole session."""
    sent = 0

    def counted() -> Session:
        nonlocal sent
        frames = session()
        frame = next(frames)
        while True:
            sent += len(frame)
            answer = yield frame
            try:
                frame = frames.send(answer)
            except StopIteration:
                return

    client = await guarded.connect()
    await play(client, counted())
    client.close()
    return sent


@pytest.mark.parametrize("session", SESSIONS)
async def test_every_prefix_of_a_session_then_the_end(guarded: Guarded, session: Callable[[], Session]) -> None:
    for cut in some(range(await length_of(guarded, session) + 1)):
        client = await guarded.connect()
        await play(client, session(), cut)
        end(client, cut)
        if cut % 50 == 0:
            await guarded.alone()
    await guarded.alone()


@pytest.mark.parametrize("session", [plain, plain_in_bare_tokens])
async def test_whole_requests_before_the_cut_are_answered_to_a_client_that_only_half_closes(
    guarded: Guarded, session: Callable[[], Session]
) -> None:
    frames = list(session())
    stream, ends = b"".join(frames), sizes_of(frames)
    for cut in some(range(len(stream) + 1)):
        client = await guarded.connect()
        await client.send(stream[:cut])
        half_close(client)
        answers = frames_in(await rest_of(client))
        assert len(answers) == sum(each <= cut for each in ends), cut
        client.close()
    await guarded.alone()


async def test_a_stream_in_pieces_of_any_size_is_answered_as_a_whole_one(guarded: Guarded) -> None:
    source, stream = random.Random(4), b"".join(plain())
    expected = await play(await guarded.connect(), plain())
    for pieces in [1, *range(2, 30)]:
        client = await guarded.connect()
        cuts = sorted(source.sample(range(1, len(stream)), pieces - 1))
        for start, stop in itertools.pairwise([0, *cuts, len(stream)]):
            await client.send(stream[start:stop])
        half_close(client)
        assert frames_in(await rest_of(client)) == expected
        client.close()


class Cut(Exception):  # noqa: N818 - the end of a test's sending
    """The client has sent as many bytes as it was allowed."""


def pieces_up_to(limit: int) -> Callable[[bytes], Iterator[bytes]]:
    """Send up to `limit` bytes of TLS, then raise `Cut`."""
    left = limit

    def pieces(data: bytes) -> Iterator[bytes]:
        nonlocal left
        part, left = data[:left], max(0, left - len(data))
        if part:
            yield part
        if len(part) < len(data) or not left:
            raise Cut

    return pieces


async def cut_off(guarded: Guarded, version: ssl.TLSVersion, limit: int, context: ssl.SSLContext) -> Client | None:
    """Return the connection of a session that was cut, or None if it had fewer bytes."""
    tls: TlsClient = await guarded.tls(pieces_up_to(limit), version, context=context)
    try:
        await play(await tls.handshake(), plain())
    except Cut:
        return tls.client
    tls.client.close()
    return None


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_every_prefix_of_a_tls_session_then_the_end(guarded: Guarded, version: ssl.TLSVersion) -> None:
    context = tls_context(version)
    for cut in itertools.count(1, 1 + 4 * (len(some(range(5))) == 1)):
        client = await cut_off(guarded, version, cut, context)
        if client is None:
            break
        if cut % 3:
            end(client, cut)
        else:
            half_close(client)
            await rest_of(client)
            client.close()
        if cut % 50 == 0:
            await guarded.alone()
    assert cut > 500
    await guarded.alone()


@pytest.mark.parametrize("updates", [1, 400, 4000])
async def test_key_updates_and_a_reset_behind_them(guarded: Guarded, updates: int) -> None:
    tls = await guarded.tls()
    await play(await tls.handshake(), plain())
    for _ in range(updates):
        send_key_update(tls.tls, is_answered=False)
    await tls.flush()
    tls.client.reset()
    await guarded.alone()
