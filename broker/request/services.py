"""The services: the parts of one broker that handlers may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.broker.clock import Clock
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.coordinator.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.transactions.local_markers import LocalMarkers
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.coordinator.transactions.verification import TransactionVerifier
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.producer_id_blocks import ProducerIdBlocks
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.purgatory import Purgatory
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.fetch.fetch_sessions import FetchSessions
from odradek.broker.replication.partitions import Partitions
from odradek.broker.request.audit import Audit
from odradek.broker.request.certificates import Certificates
from odradek.broker.request.encoded_topics import EncodedTopics
from odradek.broker.request.throttling import Throttling
from odradek.broker.request.time_slices import TimeSlices
from odradek.broker.request.topic_log import TopicLog
from odradek.broker.security.access.authorizer import Authorizer
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import ProduceResponse


@dataclass(frozen=True, slots=True)
class Services:
    """One broker's parts."""

    clock: Clock
    metadata: Metadata
    encoded_topics: EncodedTopics
    partitions: Partitions
    producer_ids: ProducerIdBlocks
    groups: GroupCoordinator
    local_markers: LocalMarkers
    transactions: TransactionCoordinator
    transaction_verifier: TransactionVerifier
    fetch_sessions: FetchSessions
    fetch_purgatory: Purgatory[FetchResponse]
    produce_purgatory: Purgatory[ProduceResponse]
    deletion_purgatory: Purgatory[None]
    authorizer: Authorizer | None
    """None: everybody may do everything."""
    audit: Audit
    topic_log: TopicLog
    certificates: Certificates
    throttling: Throttling
    metrics: Metrics
    time_slices: TimeSlices
    threads: DiskThreads
    advertised_versions: Mapping[int, tuple[int, int]]
    """The versions of each served API, by API key, as ApiVersions reports them (inclusive)."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's configuration as it holds now."""
        return self.metadata.config
