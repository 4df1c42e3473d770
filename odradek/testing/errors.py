"""The exceptions of a test's handle: a wait that took too long, and a use that another cluster does not allow."""

from __future__ import annotations

from unittest import SkipTest


class KafkaTimeoutError(TimeoutError):
    """A condition did not come true in time; the message describes the group or topic, and the last requests."""


class NeedsOwnBrokerError(SkipTest):
    """The method needs Odradek's broker, and `--kafka` names another cluster: pytest and unittest skip the test."""

    def __init__(self, what: str, bootstrap: str) -> None:
        super().__init__(f"{what} needs the broker of Odradek, and --kafka={bootstrap} names another cluster")
