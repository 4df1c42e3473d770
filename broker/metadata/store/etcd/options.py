"""The options of a store in etcd."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.broker.metrics.counts.metadata_store import MetadataStoreCounts


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
    status_interval: float = 30.0
    """Seconds between two readings of the size of etcd's database, while there is a session."""
    counts: MetadataStoreCounts = field(default_factory=MetadataStoreCounts, compare=False)

    @property
    def uses_tls(self) -> bool:
        return self.ca_certificates is not None or self.certificate is not None
