"""The vocabulary of access rules, with the codes of the protocol.

In Kafka: `AclOperation`, `ResourceType`, `PatternType`, `AclPermissionType`. ANY and MATCH are of filters only; UNKNOWN
is what a later version may have added.
"""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """What a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """What a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PatternType(IntEnum):
    """How a rule names its resources. A filter with MATCH finds the rules that concern a resource of that name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """Whether a rule forbids or allows."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of the type CLUSTER."""
EVERY_RESOURCE = "*"
"""The name of a LITERAL rule for every resource of its type."""
