"""The vocabulary of access rules: the codes that requests and responses have for it, special names, and addresses.

In Kafka: `ResourceType`, `AclOperation`, `PatternType`, `AclPermissionType`. ANY and MATCH are for filters only. A code
that an enumeration does not have is UNKNOWN: a later version may have added it.
"""

from __future__ import annotations

import ipaddress
from enum import IntEnum
from functools import lru_cache
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


@lru_cache(maxsize=1024)
def spellings_of_host(address: str) -> tuple[str, ...]:
    """Return the texts by which a rule may name a client's address: `*`, and the address itself.

    An IPv6 address also as Java prints it, without `::`, because rules that come from Kafka have that: it is the last
    one, and the only one that Apache Kafka compares. An IPv4 address on a socket of IPv6 is that IPv4 address.
    """
    unscoped, percent, scope = address.partition("%")
    try:
        parsed = ipaddress.ip_address(unscoped)
    except ValueError:
        return EVERY_HOST, address
    if isinstance(parsed, ipaddress.IPv4Address):
        return EVERY_HOST, address
    if parsed.ipv4_mapped is not None:
        return EVERY_HOST, str(parsed.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    return EVERY_HOST, f"{parsed}{percent}{scope}", f"{groups}{percent}{scope}"
