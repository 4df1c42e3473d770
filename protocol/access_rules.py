"""The vocabulary of access rules: the codes that requests and responses have for it, and its special names.

In Kafka: `ResourceType`, `AclOperation`, `PatternType`, `AclPermissionType`. ANY and MATCH are for filters only. A code
that an enumeration does not have is UNKNOWN: a later version may have added it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of the type CLUSTER."""
EVERY_RESOURCE: Final = "*"
"""The name of a LITERAL rule for every resource of its type."""
EVERY_HOST: Final = "*"
"""The host of a rule for every address."""


class _Code(IntEnum):
    """A code of the protocol."""

    @classmethod
    def _missing_(cls, value: object) -> _Code:  # noqa: ARG003 - all others are UNKNOWN
        return cls["UNKNOWN"]

    @property
    def words(self) -> str:
        """The name in messages and on command lines, as in Kafka's: `describe configs`, `transactional id`."""
        return self.name.lower().replace("_", " ")


class ResourceType(_Code):
    """The type of the resources that a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(_Code):
    """The operation that a rule allows or denies."""

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


class PatternType(_Code):
    """How a rule names its resources. A filter with MATCH finds the rules that concern a resource of that name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(_Code):
    """Whether a rule denies, which wins, or allows."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3
