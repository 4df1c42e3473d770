"""The options of a store in etcd, and the counts of its errors."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class EtcdCounts:
    """Counts since the start, for metrics. Each error that is counted is also logged."""

    endpoint_changes: int = 0
    """How often an endpoint gave no answer, and the next one was used."""
    unknown_outcomes: int = 0
    """Transactions without an answer, which are sent again."""
    full: int = 0
    """Requests that were refused because etcd has reached its quota (NOSPACE)."""
    access_refused: int = 0
    """Requests that were refused because of the password, the certificate or a missing permission."""
    sessions_lost: int = 0
    compactions: int = 0
    """Watches whose changes etcd had compacted."""


@dataclass(frozen=True)
class EtcdOptions:
    """`endpoints` are addresses, host:port. Without any of the certificates the connections are not encrypted."""

    endpoints: tuple[str, ...]
    username: str = ""
    password: str = field(default="", repr=False)
    ca_certificates: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    timeout: float = 0.5
    """Seconds that one attempt at one endpoint may take."""
    heartbeat: float = 2.0
    """The most seconds between two keep-alives of a session."""
    counts: EtcdCounts = field(default_factory=EtcdCounts, compare=False)

    @property
    def uses_tls(self) -> bool:
        return self.ca_certificates is not None or self.certificate is not None
