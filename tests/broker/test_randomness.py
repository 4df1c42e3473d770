from __future__ import annotations

import uuid

import pytest

from odradek.broker.randomness import Randomness, SeededRandomness, SystemRandomness
from odradek.protocol.uuids import uuid_to_text


@pytest.mark.parametrize("randomness", [SystemRandomness(), SeededRandomness(1)])
def test_ids_are_random_uuids_that_kafka_accepts(randomness: Randomness) -> None:
    drawn = [randomness.uuid() for _ in range(2_000)]

    assert len(set(drawn)) == 2_000
    for each in drawn:
        parsed = uuid.UUID(bytes=each)
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)
        assert not uuid_to_text(each).startswith("-")


def test_a_seed_repeats_its_draws() -> None:
    first, second, other = SeededRandomness(7), SeededRandomness(7), SeededRandomness(8)

    draws = [first.uuid(), first.random(), first.random_bytes(8)]

    assert draws == [second.uuid(), second.random(), second.random_bytes(8)]
    assert draws != [other.uuid(), other.random(), other.random_bytes(8)]


def test_floats_are_in_the_unit_interval() -> None:
    assert all(0 <= SystemRandomness().random() < 1 for _ in range(100))


@pytest.mark.parametrize("randomness", [SystemRandomness(), SeededRandomness(1)])
def test_bytes_have_the_size_that_was_asked_for(randomness: Randomness) -> None:
    assert [len(randomness.random_bytes(count)) for count in (0, 1, 24)] == [0, 1, 24]
    assert len({randomness.random_bytes(24) for _ in range(1000)}) == 1000
