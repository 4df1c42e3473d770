"""The counters of the metadata store that several brokers share; all stay 0 on a broker alone."""

from __future__ import annotations

from odradek.broker.metrics.counts.histogram import DurationHistogram


class MetadataStoreCounts:
    """Counts since the start. An attempt is one request to one server of the store; a watch is none."""

    def __init__(self) -> None:
        self.attempts = 0
        self.answered = DurationHistogram()  # the times of the attempts that were answered, refusals included
        self.unanswered = 0  # attempts without an answer: broken connections and timeouts
        self.unconnected = 0  # servers that were not sent a request: the connection was refused, or took too long
        self.endpoint_changes = 0  # an endpoint gave no answer, and the next one was used
        self.unknown_outcomes = 0  # transactions without an answer, which are sent again
        self.full = 0  # refused requests: the store has reached its quota (NOSPACE)
        self.access_refused = 0  # refused requests: a wrong password or certificate, or a missing permission
        self.renewals_failed = 0  # signs of life of this broker's session without an answer
        self.sessions_lost = 0
        self.watch_restarts = 0  # streams of changes that ended, and were opened again
        self.compactions = 0  # watches whose changes the store had dropped: the metadata were read again
        self.size_bytes = self.quota_bytes = 0  # of the server in use, when last read; 0: not known
        self.freezes = 0  # the store was found without this cluster, or older than before
