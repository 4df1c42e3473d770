"""The rules for topic names (`org.apache.kafka.common.internals.Topic`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from odradek.protocol.errors import ErrorCode, KafkaError

MAX_LENGTH = 249
"""255, the longest file name, less the partition number and the suffix of a deleted directory."""

CLUSTER_METADATA = "__cluster_metadata"
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state"})
"""Topics of the broker itself; the Metadata response marks them."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def check_name(name: str) -> None:
    """Raise `KafkaError` INVALID_TOPIC_EXCEPTION if no topic can have this name."""
    if not name:
        raise _invalid("a topic's name cannot be empty")
    if name in (".", ".."):
        raise _invalid(f"a topic cannot be named {name!r}")
    if len(name) > MAX_LENGTH:
        raise _invalid(f"a topic's name has at most {MAX_LENGTH} characters, {name!r} has {len(name)}")
    if not _LEGAL.fullmatch(name):
        raise _invalid(f"a topic's name consists of ASCII letters, digits, '.', '_' and '-': {name!r} does not")


def check_new_name(name: str, existing: Iterable[str]) -> None:
    """Raise `KafkaError` if no topic of this name can be created while `existing` ones exist.

    Names that differ only in dots and underscores collide, because they would be one name in metrics.
    """
    check_name(name)
    if name == CLUSTER_METADATA:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is reserved")
    folded = name.replace(".", "_")
    if "_" not in folded:
        return
    for other in existing:
        if other != name and other.replace(".", "_") == folded:
            raise _invalid(f"topic {name!r} collides with the existing topic {other!r}: '.' and '_' count as the same")


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, detail)
