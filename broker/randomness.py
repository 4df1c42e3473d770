"""The randomness seam: the only place in the broker that draws random bits.

The broker draws from the operating system. A test or a simulation passes a seed, and so can repeat a run.
"""

from __future__ import annotations

import random
import secrets
from typing import Protocol

_RESERVED_UUIDS = (bytes(16), bytes(15) + b"\x01")


class Randomness(Protocol):
    """A source of random ids and jitter."""

    def uuid(self) -> bytes:
        """Return 16 bytes of a random (version 4) UUID that Kafka accepts as a topic, directory or cluster id."""
        ...

    def random(self) -> float:
        """Return a float in [0.0, 1.0)."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """Return `count` random bytes: nonces, salts, secrets."""
        ...


class SystemRandomness:
    """The operating system's generator."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uuid(self) -> bytes:
        return _uuid_from(self._random)

    def random(self) -> float:
        return self._random.random()

    def random_bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)


class SeededRandomness:
    """The same draws in the same order for the same seed. Nothing that it draws is a secret."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> bytes:
        return _uuid_from(self._random)

    def random(self) -> float:
        return self._random.random()

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


def _uuid_from(source: random.Random) -> bytes:
    """Draw UUIDs until one is neither reserved by Kafka (`Uuid.RESERVED`) nor starts with a dash in base64url.

    A command line would read a leading dash as an option; Kafka avoids it, too.
    """
    while True:
        drawn = bytearray(source.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if drawn[0] >> 2 != 62 and bytes(drawn) not in _RESERVED_UUIDS:
            return bytes(drawn)
