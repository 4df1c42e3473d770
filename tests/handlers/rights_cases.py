"""A request of each API with the rights that it needs: each of them alone is missed, and all together are enough."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from odradek.protocol.access_rules import CLUSTER_NAME, Operation, ResourceType
from odradek.protocol.api import by_key
from odradek.protocol.schema import Message
from tests.handlers.requests import batch, fetch_request, produce_request
from tests.handlers.secured import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID

Right = tuple[Operation, ResourceType, str]

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS


class Case(NamedTuple):
    """One request, and the rights without which it is refused, wholly or in all of its rows."""

    key: int
    version: int
    request: Message
    rights: tuple[Right, ...]


def case(key: int, version: int, fields: dict[str, Any] | Message, *rights: Right) -> Case:
    request = fields if isinstance(fields, Message) else msgspec.convert(fields, by_key(key).request)
    return Case(key, version, request, rights)


def t(operation: Operation, name: str = "t") -> Right:
    return operation, TOPIC, name


def g(operation: Operation) -> Right:
    return operation, GROUP, "g"


def x(operation: Operation) -> Right:
    return operation, TRANSACTIONAL_ID, "x"


def cluster(operation: Operation) -> Right:
    return operation, CLUSTER, CLUSTER_NAME


def _transactional() -> bytes:
    return batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)


def _configs(kind: int, name: str) -> dict[str, Any]:
    return {"resources": [{"resource_type": kind, "resource_name": name}]}


_PARTITION = [{"partition_index": 0}]
_FILTER = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_RULE = {
    "resource_type": 2,
    "resource_name": "t",
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_QUOTA = {
    "entity": [{"entity_type": "user", "entity_name": "bob"}],
    "ops": [{"key": "producer_byte_rate", "value": 9.0}],
}
_LOGGER = 8
_BY_RESOURCE = ((2, "t", TOPIC), (32, "g", GROUP), (4, "1", CLUSTER), (_LOGGER, "1", CLUSTER))
"""Resources with properties, by type and name."""


def _config_cases(key: int, version: int, operation: Operation, *, has_loggers: bool = True) -> list[Case]:
    return [
        case(key, version, _configs(number, name), (operation, kind, CLUSTER_NAME if kind is CLUSTER else name))
        for number, name, kind in _BY_RESOURCE
        if has_loggers or number != _LOGGER
    ]


CASES = [
    case(0, 9, produce_request("t", batch(b"v")), t(WRITE)),
    case(0, 9, produce_request("t", _transactional(), transactional_id="x"), t(WRITE), x(WRITE)),
    case(1, 12, fetch_request("t"), t(READ)),
    case(1, 12, fetch_request("t", replica_id=7), cluster(CLUSTER_ACTION)),
    case(2, 6, {"topics": [{"name": "t", "partitions": _PARTITION}]}, t(DESCRIBE)),
    case(3, 9, {"topics": [{"name": "t"}]}, t(DESCRIBE)),
    case(3, 9, {"topics": [{"name": "new"}]}, t(DESCRIBE, "new"), t(CREATE, "new")),
    case(3, 9, {"topics": [{"name": "new"}]}, t(DESCRIBE, "new"), cluster(CREATE)),
    case(8, 9, {"group_id": "g", "topics": [{"name": "t", "partitions": _PARTITION}]}, g(READ), t(READ)),
    case(
        9,
        8,
        {"groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]},
        g(DESCRIBE),
        t(DESCRIBE),
    ),
    case(9, 5, {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}, g(DESCRIBE), t(DESCRIBE)),
    case(10, 2, {"key": "g"}, g(DESCRIBE)),
    case(10, 4, {"coordinator_keys": ["g"]}, g(DESCRIBE)),
    case(10, 4, {"coordinator_keys": ["x"], "key_type": 1}, x(DESCRIBE)),
    case(11, 7, {"group_id": "g"}, g(READ)),  # without a valid timeout, so that it does not wait
    case(12, 4, {"group_id": "g"}, g(READ)),
    case(13, 4, {"group_id": "g"}, g(READ)),
    case(14, 4, {"group_id": "g"}, g(READ)),
    case(15, 5, {"groups": ["g"]}, g(DESCRIBE)),
    case(19, 5, {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}]}, t(CREATE, "new")),
    case(19, 2, {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}]}, cluster(CREATE)),
    case(20, 5, {"topic_names": ["t"], "timeout_ms": 5000}, t(DELETE)),
    case(20, 6, {"topics": [{"name": "t"}], "timeout_ms": 5000}, t(DELETE)),
    case(21, 2, {"topics": [{"name": "t", "partitions": _PARTITION}]}, t(DELETE)),
    case(22, 5, {"transactional_id": "x", "transaction_timeout_ms": 1000}, x(WRITE)),
    case(22, 5, {"transactional_id": None}, cluster(Operation.IDEMPOTENT_WRITE)),
    case(22, 5, {"transactional_id": None}, t(WRITE, "any")),
    case(23, 4, {"topics": [{"topic": "t", "partitions": [{"partition": 0}]}]}, t(DESCRIBE)),
    case(23, 4, {"topics": [{"topic": "t", "partitions": [{"partition": 0}]}]}, cluster(CLUSTER_ACTION)),
    case(
        24,
        3,
        {"v3_and_below_transactional_id": "x", "v3_and_below_topics": [{"name": "t", "partitions": [0]}]},
        x(WRITE),
        t(WRITE),
    ),
    case(24, 4, {"transactions": [{"transactional_id": "x"}]}, cluster(CLUSTER_ACTION)),
    case(25, 3, {"transactional_id": "x", "group_id": "g"}, x(WRITE), g(READ)),
    case(26, 3, {"transactional_id": "x"}, x(WRITE)),
    *(
        case(27, 1, {"markers": [{"topics": [{"name": "t", "partition_indexes": [9]}]}]}, cluster(operation))
        for operation in (ALTER, CLUSTER_ACTION)
    ),
    case(
        28,
        3,
        {"transactional_id": "x", "group_id": "g", "topics": [{"name": "t", "partitions": _PARTITION}]},
        x(WRITE),
        g(READ),
        t(READ),
    ),
    case(29, 3, _FILTER, cluster(DESCRIBE)),
    case(30, 3, {"creations": [_RULE]}, cluster(ALTER)),
    case(31, 3, {"filters": [_FILTER | {"resource_name_filter": "none"}]}, cluster(ALTER)),
    *_config_cases(32, 4, DESCRIBE_CONFIGS),
    *_config_cases(33, 2, ALTER_CONFIGS, has_loggers=False),
    case(34, 2, {"dirs": [{"path": "/", "topics": [{"name": "t", "partitions": [0]}]}]}, cluster(ALTER)),
    case(35, 4, {"topics": None}, cluster(DESCRIBE)),
    case(37, 3, {"topics": [{"name": "t", "count": 2, "assignments": None}], "timeout_ms": 5000}, t(ALTER)),
    case(42, 2, {"groups_names": ["g"]}, g(DELETE)),
    case(43, 2, {"topic_partitions": [{"topic": "t", "partitions": [0]}]}, cluster(ALTER)),
    *_config_cases(44, 1, ALTER_CONFIGS),
    case(45, 1, {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": None}]}]}, cluster(ALTER)),
    case(46, 0, {}, cluster(DESCRIBE)),
    case(47, 0, {"group_id": "g", "topics": [{"name": "t", "partitions": _PARTITION}]}, g(DELETE), t(READ)),
    case(48, 1, {}, cluster(DESCRIBE_CONFIGS)),
    case(49, 1, {"entries": [_QUOTA], "validate_only": True}, cluster(ALTER_CONFIGS)),
    case(50, 0, {"users": None}, cluster(DESCRIBE)),
    case(51, 0, {"deletions": [{"name": "nobody", "mechanism": 1}]}, cluster(ALTER)),
    case(57, 1, {"feature_updates": [], "validate_only": True}, cluster(ALTER)),
    case(61, 0, {"topics": [{"name": "t", "partition_indexes": [0]}]}, t(READ)),
    case(64, 0, {"broker_id": 77}, cluster(ALTER)),
    case(65, 0, {"transactional_ids": ["x"]}, x(DESCRIBE)),
    case(
        68,
        1,
        {
            "group_id": "g",
            "member_id": "m",
            "rebalance_timeout_ms": 1000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
        },
        g(READ),
        t(DESCRIBE),
    ),
    case(69, 1, {"group_ids": ["g"]}, g(DESCRIBE)),
    case(74, 1, {}, cluster(DESCRIBE_CONFIGS)),
    case(75, 0, {"topics": [{"name": "t"}]}, t(DESCRIBE)),
]

ONLY_FILTERED = {16, 66}
"""The APIs that refuse nobody and omit what the client may not describe."""
