"""The rights that each API needs, if there is an authorizer: one row for each row of `table`.

`on_cluster` are operations on the cluster, of which a request as a whole needs one. `HandlerTable` checks it before the
handler runs; without it every row of the answer is CLUSTER_AUTHORIZATION_FAILED. `on_resources` are checked by the
handler for each resource that a request names (`request.rights`), so that some rows may succeed. An API with neither is
for everybody. An API without a row here is served to nobody: its handler cannot be loaded.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.protocol.access_rules import Operation, ResourceType

_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID


class Right(NamedTuple):
    """An operation on the resources of a type; `when` says for which requests or rows, if not for all."""

    operation: Operation
    resource_type: ResourceType
    when: str = ""


class Rights(NamedTuple):
    """The rights that an API needs."""

    on_cluster: tuple[Operation, ...] = ()
    on_resources: tuple[Right, ...] = ()


def _cluster(*operations: Operation) -> Rights:
    return Rights(operations)


def _each(*rights: Right) -> Rights:
    return Rights((), rights)


FOR_EVERYBODY = Rights()
_DESCRIBE, _READ, _WRITE, _ALTER = Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.ALTER
_READ_GROUP = _each(Right(_READ, _GROUP))
_CONFIGS = "if it is of a broker or its loggers"

RIGHTS: dict[int, Rights] = {
    0: _each(
        Right(_WRITE, _TOPIC),
        Right(_WRITE, _TRANSACTIONAL_ID, "if a batch is transactional"),
    ),
    1: _each(
        Right(_READ, _TOPIC, "of a consumer"),
        Right(
            Operation.CLUSTER_ACTION,
            _CLUSTER,
            "of a fetcher with a replica id, which must be at the listener of brokers",
        ),
    ),
    2: _each(Right(_DESCRIBE, _TOPIC)),
    3: _each(
        Right(_DESCRIBE, _TOPIC),
        Right(Operation.CREATE, _CLUSTER, "or on the topic, if it is created"),
    ),
    8: _each(Right(_READ, _GROUP), Right(_READ, _TOPIC)),
    9: _each(Right(_DESCRIBE, _GROUP), Right(_DESCRIBE, _TOPIC)),
    10: _each(
        Right(_DESCRIBE, _GROUP, "if the key is one"),
        Right(_DESCRIBE, _TRANSACTIONAL_ID, "if the key is one"),
    ),
    11: _READ_GROUP,
    12: _READ_GROUP,
    13: _READ_GROUP,
    14: _READ_GROUP,
    15: _each(Right(_DESCRIBE, _GROUP)),
    16: _each(Right(_DESCRIBE, _GROUP, "unless the client may describe the cluster; others are omitted")),
    17: FOR_EVERYBODY,
    18: FOR_EVERYBODY,
    19: _each(Right(Operation.CREATE, _TOPIC, "or on the cluster")),
    20: _each(Right(Operation.DELETE, _TOPIC)),
    21: _each(Right(Operation.DELETE, _TOPIC)),
    22: _each(
        Right(_WRITE, _TRANSACTIONAL_ID, "if there is one"),
        Right(Operation.IDEMPOTENT_WRITE, _CLUSTER, "or Write on any topic, if there is none"),
    ),
    23: _each(Right(_DESCRIBE, _TOPIC, "or ClusterAction on the cluster")),
    24: _each(
        Right(_WRITE, _TRANSACTIONAL_ID, "up to version 3"),
        Right(_WRITE, _TOPIC, "up to version 3"),
        Right(Operation.CLUSTER_ACTION, _CLUSTER, "from version 4 on"),
    ),
    25: _each(Right(_WRITE, _TRANSACTIONAL_ID), Right(_READ, _GROUP)),
    26: _each(Right(_WRITE, _TRANSACTIONAL_ID)),
    27: _cluster(_ALTER, Operation.CLUSTER_ACTION),
    28: _each(Right(_WRITE, _TRANSACTIONAL_ID), Right(_READ, _GROUP), Right(_READ, _TOPIC)),
    29: _cluster(_DESCRIBE),
    30: _cluster(_ALTER),
    31: _cluster(_ALTER),
    32: _each(
        Right(Operation.DESCRIBE_CONFIGS, _TOPIC),
        Right(Operation.DESCRIBE_CONFIGS, _GROUP),
        Right(Operation.DESCRIBE_CONFIGS, _CLUSTER, _CONFIGS),
    ),
    33: _each(
        Right(Operation.ALTER_CONFIGS, _TOPIC),
        Right(Operation.ALTER_CONFIGS, _GROUP),
        Right(Operation.ALTER_CONFIGS, _CLUSTER, _CONFIGS),
    ),
    34: _cluster(_ALTER),
    35: _cluster(_DESCRIBE),
    36: FOR_EVERYBODY,
    37: _each(Right(_ALTER, _TOPIC)),
    38: FOR_EVERYBODY,  # there are no delegation tokens: the next four are refused for everybody
    39: FOR_EVERYBODY,
    40: FOR_EVERYBODY,
    41: FOR_EVERYBODY,
    42: _each(Right(Operation.DELETE, _GROUP)),
    43: _cluster(_ALTER),
    44: _each(
        Right(Operation.ALTER_CONFIGS, _TOPIC),
        Right(Operation.ALTER_CONFIGS, _GROUP),
        Right(Operation.ALTER_CONFIGS, _CLUSTER, _CONFIGS),
    ),
    45: _cluster(_ALTER),
    46: _cluster(_DESCRIBE),
    47: _each(Right(Operation.DELETE, _GROUP), Right(_READ, _TOPIC)),
    48: _cluster(Operation.DESCRIBE_CONFIGS),
    49: _cluster(Operation.ALTER_CONFIGS),
    50: _cluster(_DESCRIBE),
    51: _cluster(_ALTER),
    57: _cluster(_ALTER),
    60: FOR_EVERYBODY,  # brokers and the cluster id, which every client needs; operations only with Describe
    61: _each(Right(_READ, _TOPIC)),
    64: _cluster(_ALTER),
    65: _each(
        Right(_DESCRIBE, _TRANSACTIONAL_ID),
        Right(_DESCRIBE, _TOPIC, "of the topics in the transaction; others are omitted"),
    ),
    66: _each(Right(_DESCRIBE, _TRANSACTIONAL_ID, "others are omitted")),
    68: _each(
        Right(_READ, _GROUP), Right(_DESCRIBE, _TOPIC, "if the member names it; a pattern does not match others")
    ),
    69: _each(Right(_DESCRIBE, _GROUP), Right(_DESCRIBE, _TOPIC, "of the topics that are assigned")),
    74: _cluster(Operation.DESCRIBE_CONFIGS),
    75: _each(Right(_DESCRIBE, _TOPIC)),
}
