"""The parts of a broker between its logs and its sockets: created and connected here; none of them runs yet.

```
Foundation ─► Metadata ─► Partitions ─► GroupCoordinator ─► TransactionCoordinator ─► Services ─► Server
                  │  image    ▲
                  └───────────┴── Replication, in a cluster of several brokers
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker import waiting
from odradek.broker.apis.table import HandlerTable
from odradek.broker.build_info import version
from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.config.security_rules import super_users
from odradek.broker.coordinator.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.group_types import group_factories
from odradek.broker.coordinator.transactions.local_markers import LocalMarkers
from odradek.broker.coordinator.transactions.marker_sender import MarkerSender
from odradek.broker.coordinator.transactions.other_brokers import OtherBrokers
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.coordinator.transactions.verification import TransactionVerifier
from odradek.broker.maintenance.periodic_tasks import PeriodicTasks
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.producer_id_blocks import ProducerIdBlocks
from odradek.broker.metadata.registration import Installation
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.metrics.collectors.group_lag import GroupLag
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.purgatory import Purgatory
from odradek.broker.quotas.client_quotas import ClientQuotas
from odradek.broker.quotas.connection_rates import AddressRates
from odradek.broker.quotas.samples import Windows
from odradek.broker.randomness import Randomness
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.fetch.fetch_sessions import FetchSessions
from odradek.broker.replication.partitions import Partitions
from odradek.broker.request.audit import Audit
from odradek.broker.request.audited_changes import ChangeAudit
from odradek.broker.request.authenticators import Authenticators
from odradek.broker.request.certificates import Certificates
from odradek.broker.request.encoded_topics import EncodedTopics
from odradek.broker.request.services import Services
from odradek.broker.request.throttling import Throttling
from odradek.broker.request.time_slices import TimeSlices
from odradek.broker.request.topic_log import TopicLog
from odradek.broker.server.server import Server, ServerSecurity
from odradek.broker.startup.authorizer import make_authorizer
from odradek.broker.startup.machine import Machine
from odradek.broker.startup.metadata_store import session_seconds
from odradek.broker.startup.security import Authentications, ScramUserTable, is_audited
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from odradek.broker.interbroker.replication import Replication
    from odradek.broker.security.tls.listener_tls import ListenerTls


@dataclass(frozen=True)
class Foundation:
    """The parts below: opened log directories, threads, and the seams to the world.

    `is_member`: the broker belongs to a cluster of several; `host`: see `BrokerRegistration`. `on_failure` is called
    with the name of a part and its error when the broker cannot go on. `tls` has the listeners with TLS, by name.
    """

    config: BrokerConfig
    log_dirs: LogDirs
    threads: DiskThreads
    tasks: BackgroundTasks
    metrics: Metrics
    clock: Clock
    randomness: Randomness
    machine: Machine
    on_failure: Callable[[str, BaseException], None]
    most_connections: int
    is_member: bool
    host: str
    read_only: bool
    tls: Mapping[str, ListenerTls]


class Purgatories(NamedTuple):
    """The delayed requests that wait for partitions, in the order in which they are checked."""

    produce: Purgatory[ProduceResponse]
    groups: Purgatory[bool]
    fetch: Purgatory[FetchResponse]
    deletions: Purgatory[None]


class Parts(NamedTuple):
    """The result of `build`."""

    services: Services
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    purgatories: Purgatories
    periodic_tasks: PeriodicTasks
    group_lag: GroupLag
    server: Server
    authentications: Authentications
    replication: Replication | None


def build(base: Foundation, store: MetadataStore) -> Parts:
    """Create the parts. Must be called on the event loop."""
    config, clock = base.config, base.clock
    loop, client_timers = asyncio.get_running_loop(), waiting.client_timers(clock)
    purgatories = Purgatories(
        Purgatory("Produce", loop, client_timers),
        Purgatory("Groups", loop, client_timers),
        Purgatory("Fetch", loop, client_timers),
        Purgatory("DeleteRecords", loop, client_timers),
    )
    metadata = _metadata(base, store)
    partitions = Partitions(
        node_id=config.node_id,
        log_dirs=base.log_dirs,
        config=metadata.current_config,
        purgatories=(purgatories.produce, purgatories.groups, purgatories.fetch),
        deletions=purgatories.deletions,
        threads=base.threads,
        tasks=base.tasks,
        metrics=base.metrics,
        clock=clock,
    )
    replication = _replication(base, metadata, partitions) if base.is_member else None
    groups = GroupCoordinator(
        config=config,
        clock=clock,
        metadata=metadata,
        partitions=partitions,
        threads=base.threads,
        tasks=base.tasks,
        purgatory=purgatories.groups,
        factories=group_factories(metadata.current_config, lambda: metadata.image),
    )
    producer_ids = ProducerIdBlocks(metadata)
    local_markers = LocalMarkers(partitions, groups, clock, purgatories.groups)
    other_brokers = _other_brokers(base, replication)
    time_slices = TimeSlices(clock)
    transactions = TransactionCoordinator(
        clock=clock,
        metadata=metadata,
        partitions=partitions,
        threads=base.threads,
        tasks=base.tasks,
        purgatory=purgatories.groups,
        producer_ids=producer_ids,
        markers=MarkerSender(
            config.node_id, metadata, local_markers, other_brokers, base.tasks, waiting.timers(clock), time_slices
        ),
        counts=base.metrics.transactions,
        read_only=base.read_only,
    )
    audit, topic_log = Audit(clock), TopicLog(clock)
    authentications = Authentications(config, clock, base.tasks, ScramUserTable(metadata), base.randomness)
    handlers = HandlerTable(read_only=base.read_only)
    services = Services(
        clock=clock,
        metadata=metadata,
        encoded_topics=EncodedTopics(metadata),
        partitions=partitions,
        producer_ids=producer_ids,
        groups=groups,
        transactions=transactions,
        local_markers=local_markers,
        transaction_verifier=TransactionVerifier(
            config.node_id, transactions, other_brokers, lambda: metadata.config, clock, base.metrics.transactions
        ),
        fetch_sessions=FetchSessions(
            config.max_incremental_fetch_session_cache_slots,
            clock,
            base.randomness,
            config.max_incremental_fetch_session_cache_partitions,
        ),
        fetch_purgatory=purgatories.fetch,
        produce_purgatory=purgatories.produce,
        deletion_purgatory=purgatories.deletions,
        authorizer=make_authorizer(
            metadata, super_users(config.super_users), allow_everyone=config.allow_everyone_if_no_acl_found
        )
        if config.authorizer_class_name
        else None,
        audit=audit,
        topic_log=topic_log,
        certificates=Certificates(base.tls, base.threads.run),
        throttling=_throttling(config, clock, metadata),
        metrics=base.metrics,
        time_slices=time_slices,
        threads=base.threads,
        advertised_versions=handlers.advertised_versions,
    )
    server = Server(
        metadata.current_config,
        handlers,
        services,
        base.metrics,
        clock,
        base.threads.run,
        most_connections=base.most_connections,
        time_slices=services.time_slices,
        new_listener=base.machine.new_listener,
        security=ServerSecurity(base.tls, Authenticators(authentications.by_listener(), clock, base.metrics, audit)),
    )
    server.on_tick += [audit.tick, topic_log.tick]
    server.on_finish += [audit.close, topic_log.close]
    metadata.current_config.on_change(server.check_certificates)  # those of all listeners, as in Kafka
    if is_audited(config):
        server.dispatcher.routes.add_interceptor(ChangeAudit(audit))
    server.throttle_by(services.throttling)
    metadata.on_broker_epoch.append(base.log_dirs.set_broker_epoch)
    metadata.on_change(partitions.apply)
    metadata.on_change(groups.image_changed)
    metadata.on_change(transactions.image_changed)
    metadata.on_change(services.throttling.image_changed)
    return Parts(
        services,
        groups,
        transactions,
        purgatories,
        PeriodicTasks(base.log_dirs, partitions, base.threads, clock, metadata.current_config),
        GroupLag(groups, partitions, base.threads, clock, config.metrics_partition_limit),
        server,
        authentications,
        replication,
    )


def _metadata(base: Foundation, store: MetadataStore) -> Metadata:
    return Metadata(
        base.config,
        store,
        installation=Installation(
            base.log_dirs.first.meta.cluster_id,
            tuple(each.meta.directory_id for each in base.log_dirs.online),
            base.machine.boot_id(),
            version() if base.is_member else "",
            base.host,
        ),
        clock=base.clock,
        randomness=base.randomness,
        on_failure=base.on_failure,
        session_seconds=session_seconds(base.config),
        is_shared=base.is_member,
        counts=base.metrics.metadata_store,
    )


def _throttling(config: BrokerConfig, clock: Clock, metadata: Metadata) -> Throttling:
    windows = Windows(config.quota_window_num, config.quota_window_size_seconds)
    quotas = ClientQuotas(
        windows, Windows(config.controller_quota_window_num, config.controller_quota_window_size_seconds)
    )
    return Throttling(quotas, AddressRates(windows), clock.monotonic, lambda: metadata.config.inter_broker_listener)


def _replication(base: Foundation, metadata: Metadata, partitions: Partitions) -> Replication:
    from odradek.broker.interbroker.replication import Replication  # a broker alone needs no client
    from odradek.broker.interbroker.security import security_between_brokers

    return Replication(
        metadata,
        partitions,
        clock=base.clock,
        tasks=base.tasks,
        metrics=base.metrics,
        network=base.machine.network,
        security=security_between_brokers(base.config),
    )


def _other_brokers(base: Foundation, replication: Replication | None) -> OtherBrokers | None:
    if replication is None:
        return None
    from odradek.broker.interbroker.transactions import InterBrokerTransactions  # a broker alone needs no client

    return InterBrokerTransactions(replication.connections, base.tasks)
