"""Mutations of requests: the bytes that a broken or hostile client, or a bad cable, might send.

Each takes a random source and the whole corpus, and returns the bytes of one frame with its 4-byte length prefix, or an
invalid frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[Random, Sequence[bytes]], bytes]

# Critical values of integers: ends of ranges, signs, null, and lengths of other fields.
EDGES = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 1 << 63]
CREATE_TOPICS = (19).to_bytes(2)


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4) + body


def sound(random: Random, corpus: Sequence[bytes]) -> bytes:
    return frame(random.choice(corpus))


def flipped_bits(random: Random, corpus: Sequence[bytes]) -> bytes:
    body = bytearray(random.choice(corpus))
    for _ in range(random.randint(1, 8)):
        body[random.randrange(len(body))] ^= 1 << random.randrange(8)
    return frame(bytes(body))


def edge_integer(random: Random, corpus: Sequence[bytes]) -> bytes:
    body = bytearray(random.choice(corpus))
    width = random.choice((1, 2, 4, 8))
    at = random.randrange(len(body))
    body[at : at + width] = (random.choice(EDGES) % (1 << 8 * width)).to_bytes(width)
    return frame(bytes(body))


def other_version(random: Random, corpus: Sequence[bytes]) -> bytes:
    """The body of one version with the number of another."""
    body = bytearray(random.choice(corpus))
    body[2:4] = random.randint(0, 20).to_bytes(2)
    return frame(bytes(body))


def other_api(random: Random, corpus: Sequence[bytes]) -> bytes:
    body = bytearray(random.choice(corpus))
    body[0:2] = random.randint(0, 95).to_bytes(2)
    return frame(bytes(body))


def cut(random: Random, corpus: Sequence[bytes]) -> bytes:
    body = random.choice(corpus)
    return frame(body[: random.randrange(len(body))])


def removed(random: Random, corpus: Sequence[bytes]) -> bytes:
    body = random.choice(corpus)
    start = random.randrange(len(body))
    return frame(body[:start] + body[start + random.randint(1, 16) :])


def inserted(random: Random, corpus: Sequence[bytes]) -> bytes:
    body = random.choice(corpus)
    start = random.randrange(len(body))
    return frame(body[:start] + random.randbytes(random.randint(1, 16)) + body[start:])


def doubled(random: Random, corpus: Sequence[bytes]) -> bytes:
    body = random.choice(corpus)
    start = random.randrange(len(body))
    end = random.randint(start, len(body))
    return frame(body[:end] + body[start:end] * random.randint(1, 20) + body[end:])


def spliced(random: Random, corpus: Sequence[bytes]) -> bytes:
    """The start of one request and the end of another."""
    head, tail = random.choice(corpus), random.choice(corpus)
    return frame(head[: random.randrange(len(head))] + tail[random.randrange(len(tail)) :])


def lying_length(random: Random, corpus: Sequence[bytes]) -> bytes:
    """A prefix that is not the length of the frame."""
    body = random.choice(corpus)
    claimed = random.choice([0, 1, len(body) - 1, len(body) + 1, len(body) * 2, *EDGES]) % (1 << 32)
    return claimed.to_bytes(4) + body


def noise(random: Random, corpus: Sequence[bytes]) -> bytes:
    return random.randbytes(random.randint(1, 300))


def framed_noise(random: Random, corpus: Sequence[bytes]) -> bytes:
    return frame(random.randbytes(random.randint(0, 300)))


MUTATIONS: list[Mutation] = [
    sound,
    flipped_bits,
    edge_integer,
    other_version,
    other_api,
    cut,
    removed,
    inserted,
    doubled,
    spliced,
    lying_length,
    noise,
    framed_noise,
]
