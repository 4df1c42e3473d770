"""Client quotas: alterations and filters, valid and invalid. The texts of refusals are compared, too."""

from __future__ import annotations

from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.handlers.quotas import ANY, DEFAULT, EXACT, Part, alter, describe, entry
from tests.interop.differential.playing import Step, accepted

ALICE: list[Part] = [("user", "alice")]
ADDRESS: list[Part] = [("ip", "192.0.2.7")]
PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"
CREATION = "connection_creation_rate"


def _with_texts(answer: Any) -> Any:
    """The rows with their texts in a field that is compared."""
    return [
        (
            row.error_code,
            row.error_message,
            sorted((part.entity_type, part.entity_name or "") for part in row.entity),
        )
        for row in sorted(answer.entries, key=lambda row: str([(p.entity_type, p.entity_name) for p in row.entity]))
    ]


def _described(answer: Any) -> Any:
    """The code, the text and the entities of a description."""
    entries = [
        (
            sorted((part.entity_type, part.entity_name or "") for part in each.entity),
            sorted((value.key, value.value) for value in each.values),
        )
        for each in answer.entries or []
    ]
    return [answer.error_code, answer.error_message, answer.entries is None, sorted(entries)]


def _alter(parts: list[Part], *limits: tuple[str, float | None], validate_only: bool = False) -> Step:
    return Step(alter(parts, *limits, validate_only=validate_only), 1, counts=_with_texts)


def _find(*components: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Step:
    return Step(describe(*components, strict=strict), version, reads=True, counts=_described)


VALUES = [
    *(
        _alter(ALICE, (PRODUCER, value))
        for value in (1000.0, 1000.0000001, 1000.5, -1.0, -1.5, 0.0, 1e300, 9.3e18, 0.9999999)
    ),
    *(_alter(ALICE, (REQUEST, value)) for value in (-5.0, 0.0, 50.5, 1e9)),
    *(_alter(ALICE, (MUTATION, value)) for value in (0.5, -0.5)),
    *(_alter(ADDRESS, (CREATION, value)) for value in (5.0, 5.5, -5.0, 3e9)),
    accepted(_alter(ALICE, (PRODUCER, float("nan"))), "a limit that is no number limits nothing"),
    accepted(_alter(ALICE, (REQUEST, float("inf"))), "as above"),
    _alter(ALICE, (PRODUCER, 1000.0), (REQUEST, 50.5)),
    _find(("user", EXACT, "alice")),
    _find(("user", EXACT, "alice"), version=0),
]
_CONSUMERS: list[list[Part]] = [
    [("user", None)],
    [("client-id", None)],
    [("user", None), ("client-id", None)],
    [("user", "alice"), ("client-id", None)],
    [("user", None), ("client-id", "c")],
    [("user", "alice"), ("client-id", "c")],
    [("client-id", "c"), ("user", "alice")],
    [("client-id", "c/ d%<default>")],
]
ENTITIES = [
    _alter([], (PRODUCER, 5.0)),
    *(_alter([(kind, "")], (PRODUCER, 5.0)) for kind in ("user", "client-id", "ip")),
    *(_alter([(kind, "x")], (PRODUCER, 5.0)) for kind in ("team", "", "User")),
    _alter([("user", "a"), ("user", "b")], (PRODUCER, 5.0)),
    _alter([("user", "a"), *ADDRESS], (PRODUCER, 5.0)),
    _alter([("client-id", "a"), *ADDRESS], (PRODUCER, 5.0)),
    _alter([("user", "a"), ("client-id", "c"), *ADDRESS], (CREATION, 5.0)),
    *(_alter([("ip", name)], (CREATION, 5.0)) for name in ("256.1.1.1", "not an address", "::1", "[::1]", None)),
    *(
        accepted(_alter([("ip", name)], (CREATION, 5.0)), "names are not resolved")
        for name in ("localhost", "7", "1.2.3")
    ),
    *(_alter(parts, (CONSUMER, 9.0)) for parts in _CONSUMERS),
]
CHANGES = [
    _alter(ALICE, (CREATION, 5.0)),
    _alter(ADDRESS, (PRODUCER, 5.0)),
    _alter(ALICE, ("SCRAM-SHA-256", 5.0)),
    _alter(ALICE, ("unknown", 5.0)),
    _alter(ALICE, ("unknown", None)),
    _alter(ALICE, (PRODUCER, 5.0), (PRODUCER, 6.0)),
    _alter(ALICE, (PRODUCER, 5.0), ("unknown", 6.0)),
    _alter(ALICE),
    _alter([("user", "bob")], (PRODUCER, 8.0), validate_only=True),
    _alter([("user", "bob")], ("unknown", 8.0), validate_only=True),
    _alter([("user", "nobody")], (PRODUCER, None)),
    Step(
        AlterClientQuotasRequest([entry([("user", "z")], (PRODUCER, 5.0)), entry([("user", "z")], (CONSUMER, 5.0))]),
        1,
        counts=_with_texts,
    ),
    Step(
        AlterClientQuotasRequest([entry([("user", "y")], (PRODUCER, 5.0)), entry([("user", "x")], ("unknown", 5.0))]),
        0,
        counts=_with_texts,
    ),
    Step(AlterClientQuotasRequest([]), 1),
    _find(("user", ANY, None)),
    _alter(ALICE, (PRODUCER, None), (REQUEST, None), (MUTATION, None)),
    _find(("user", EXACT, "alice")),
]
FILTERS = [
    _find(("user", DEFAULT, None)),
    *(_find((kind, ANY, None), strict=strict) for kind in ("user", "client-id") for strict in (False, True)),
    _find(("client-id", DEFAULT, None), strict=True),
    _find(("user", EXACT, "alice"), ("client-id", ANY, None)),
    _find(("ip", EXACT, "192.0.2.7")),
    _find(("user", EXACT, "")),
    _find(strict=True),
    *(
        _find(*components)
        for components in (
            [("ip", ANY, None), ("user", EXACT, "u")],
            [("team", ANY, None)],
            [("", ANY, None)],
            [("user", 5, "u")],
            [("user", -1, None)],
            [("user", EXACT, None)],
            [("user", DEFAULT, "u")],
            [("user", ANY, "u")],
            [("user", ANY, None), ("user", EXACT, "u")],
            [("team", ANY, "x"), ("", ANY, None)],
        )
    ),
]
REMOVALS = [
    *(_alter(parts, (CONSUMER, None)) for parts in _CONSUMERS),
    *(_alter([("ip", name)], (CREATION, None)) for name in (None, "::1")),
    accepted(_alter([("ip", "localhost")], (CREATION, None)), "names are not resolved"),
]
"""The limits that would hold up the scripts after this one."""
QUOTAS = [*VALUES, *ENTITIES, *CHANGES, *FILTERS, *REMOVALS]

_EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def _codes(answer: Any) -> Any:
    """The codes of the rows, the texts of those over the quota, and whether the client is throttled."""
    rows = next(
        rows for name in ("topics", "results", "responses") if (rows := getattr(answer, name, None)) is not None
    )
    texts = [(int(row.error_code), row.error_message if row.error_code == _EXCEEDED else None) for row in rows]
    return [sorted(texts, key=str), answer.throttle_time_ms > 0]


def _create(version: int, *sizes: tuple[str, int], validate_only: bool = False) -> Step:
    topics = [CreatableTopic(name, partitions, 1) for name, partitions in sizes]
    return Step(CreateTopicsRequest(topics, 30_000, validate_only), version, counts=_codes)


def _grow(version: int, *sizes: tuple[str, int]) -> Step:
    topics = [CreatePartitionsTopic(name, count, None) for name, count in sizes]
    return Step(CreatePartitionsRequest(topics, 30_000), version, counts=_codes)


def _delete(version: int, *names: str) -> Step:
    states = [DeleteTopicState(name) for name in names] if version >= 6 else []
    return Step(DeleteTopicsRequest(states, [] if states else list(names), 30_000), version, counts=_codes)


ANONYMOUS: list[Part] = [("user", "ANONYMOUS")]
# Five tokens a second, and 55 at first. After that, each request begins with no more tokens than came while the other
# server was slow: its first topic overdraws the bucket unless that took three seconds, and its second one is refused.
MUTATIONS = [
    _create(7, ("m1", 1), ("m2", 1), ("m3", 1)),
    _alter(ANONYMOUS, (MUTATION, 5.0)),
    *[_find(("user", EXACT, "ANONYMOUS"))] * 3,
    _create(7, ("m4", 60), ("m5", 1)),
    _create(7, ("m1", 60), ("m5", 15), ("m6", 1)),
    _create(6, ("m7", 15), ("m8", 1), validate_only=True),
    _create(5, ("m7", 15), ("m8", 1)),
    _grow(3, ("m1", 16), ("m2", 2)),
    _grow(2, ("m2", 16), ("m3", 2)),
    _grow(3, ("m1", 1), ("m2", 31), ("m3", 3)),
    _delete(6, "m1", "m7"),
    _delete(5, "m2", "m5", "none"),
    _delete(4, "m4", "m3"),
    _alter(ANONYMOUS, (MUTATION, None)),
    *[_find(("user", EXACT, "ANONYMOUS"))] * 3,
    # Which of two topics was deleted depends on Kafka's hash tables: none is left to other scripts.
    *[_delete(6, *(f"m{number}" for number in range(1, 9)))._replace(counts=lambda answer: None)] * 2,
]
