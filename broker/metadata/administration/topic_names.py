"""The rules for topic names (`org.apache.kafka.common.internals.Topic`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

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
        raise _invalid("the empty string is not allowed")
    if name in (".", ".."):
        raise _invalid(f"{name!r} is not allowed")
    if len(name) > MAX_LENGTH:
        raise _invalid(f"the length of {name!r} is longer than the max allowed length {MAX_LENGTH}")
    if not _LEGAL.fullmatch(name):
        raise _invalid(f"{name!r} contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'")


class TakenNames:
    """The names that new topics must not collide with: those of existing topics, and those that `add` adds.

    Names that differ only in dots and underscores collide, because they would be one name in metrics.
    """

    def __init__(self, existing: Iterable[str]) -> None:
        self._existing = existing

    def add(self, name: str) -> None:
        if "_" in _folded(name):
            self._by_folded[_folded(name)] = name

    def check_new(self, name: str) -> None:
        """Raise `KafkaError` if no topic of this name can be created: INVALID_TOPIC_EXCEPTION, INVALID_REQUEST."""
        check_name(name)
        if name == CLUSTER_METADATA:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        folded = _folded(name)
        other = self._by_folded.get(folded) if "_" in folded else None
        if other is not None and other != name:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic {name!r} collides with existing topic: {other} ('.' and '_' count as the same)",
            )

    @cached_property
    def _by_folded(self) -> dict[str, str]:
        """The names with a dot or underscore by what they are in metrics: found once, for any number of new topics."""
        return {folded: name for name in self._existing if "_" in (folded := _folded(name))}


def _folded(name: str) -> str:
    return name.replace(".", "_")


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {detail}")
