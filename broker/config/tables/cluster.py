"""Properties of several brokers: their metadata store (none of these is Kafka's), membership, and replication."""

from __future__ import annotations

import re

from odradek.broker.config.bounds import at_least, one_of
from odradek.broker.config.property import Property, SecuredProperty, Table
from odradek.broker.config.types import (
    BOOLEAN,
    INT,
    LONG,
    PASSWORD,
    STRING,
    InvalidValueError,
    Type,
    TypeCode,
    list_of,
    nullable,
)

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:/\[\]\s]+):([0-9]{1,5})\Z")
_NAMESPACE = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\Z")
_MAX_PORT = 65_535


def _address(text: str) -> str:
    match = _ADDRESS.match(text)
    if match is None or not 1 <= int(match[2]) <= _MAX_PORT:
        raise InvalidValueError(f"{text!r} is not of the form host:port, for example etcd-1:2379")
    return text


def _namespace(text: str) -> str:
    if _NAMESPACE.match(text) is None:
        raise InvalidValueError("expected letters, digits, dots, dashes and underscores, with single slashes between")
    return text


# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class MetadataStoreProperties(Table):
    """Metadata of several brokers, in etcd."""

    metadata_etcd_endpoints = Property(
        "metadata.etcd.endpoints", list_of(_address), [], own=True,
        doc="The members of etcd that store the cluster's metadata: host:port, ... Empty: this broker is the only one, "
        "and stores its metadata in its first log directory.",
    )
    metadata_etcd_namespace = Property(
        "metadata.etcd.namespace", Type(TypeCode.STRING, _namespace), "odradek", own=True,
        doc="The first part of every key in etcd, so that several clusters can share it. All brokers of a cluster "
        "have the same.",
    )
    metadata_etcd_username = Property(
        "metadata.etcd.username", nullable(STRING), None, own=True,
        doc="The user of etcd, with permission to read and write all keys under /<metadata.etcd.namespace>/. Unset: "
        "none, or the common name of the certificate.",
    )
    metadata_etcd_password = Property(
        "metadata.etcd.password", nullable(PASSWORD), None, own=True,
        doc="The password of metadata.etcd.username.",
    )
    metadata_etcd_ca_file = Property(
        "metadata.etcd.ca.file", nullable(STRING), None, own=True,
        doc="The certificates (PEM) of the authorities that etcd's certificates are checked with. Set: connections to "
        "etcd are encrypted.",
    )
    metadata_etcd_certificate_file = Property(
        "metadata.etcd.certificate.file", nullable(STRING), None, own=True,
        doc="This broker's certificate (PEM), if etcd requires one of its clients.",
    )
    metadata_etcd_key_file = Property(
        "metadata.etcd.key.file", nullable(STRING), None, own=True,
        doc="The key (PEM) of metadata.etcd.certificate.file.",
    )
    metadata_etcd_timeout_ms = Property(
        "metadata.etcd.timeout.ms", INT, 500, at_least(10), own=True,
        doc="The time limit of one attempt at one member of etcd; after it the next member is used.",
    )


class MembershipProperties(Table):
    """The session of a broker in a cluster of several."""

    broker_session_timeout_ms = Property(
        "broker.session.timeout.ms", INT, 9000,
        doc="The time after which the other brokers take the place of one that is silent. At least 2000 in a cluster.",
    )
    broker_heartbeat_interval_ms = Property(
        "broker.heartbeat.interval.ms", INT, 2000,
        doc="The most time between two signs of life of a broker in the metadata store; a fifth of its session, if "
        "that is less.",
    )
    fencing_mode = Property(
        "fencing.mode", STRING, "isr", one_of("isr", "strict"), own=True,
        doc="What a broker serves of the partitions that it leads when it cannot renew its session in the metadata "
        "store. isr: partitions with a single replica, and those whose other in-sync replicas all go on fetching from "
        "it; so an outage of etcd stops administration only. strict: nothing.",
    )
    log_dir_failure_timeout_ms = Property(
        "log.dir.failure.timeout.ms", LONG, 30_000, at_least(1),
        doc="The time after which a broker of a cluster stops if it cannot report a failed log directory to the "
        "metadata store.",
    )
    controlled_shutdown_enable = Property(
        "controlled.shutdown.enable", BOOLEAN, True,
        doc="Whether a broker that stops waits until others lead its partitions.",
    )


class LeaderBalanceProperties(Table):
    """The return of leadership to preferred replicas."""

    auto_leader_rebalance_enable = Property(
        "auto.leader.rebalance.enable", BOOLEAN, True,
        doc="Whether a preferred replica, the first of a partition, is elected again when it is back in sync.",
    )
    leader_imbalance_check_interval_seconds = Property(
        "leader.imbalance.check.interval.seconds", LONG, 300, at_least(1),
        doc="The time between two searches for preferred replicas that do not lead.",
    )


class ReplicationProperties(Table):
    """The replication of partitions between brokers."""

    inter_broker_listener_name = Property(
        "inter.broker.listener.name", nullable(STRING), None,
        doc="The listener at which the other brokers of the cluster connect. Unset: the first one.",
    )
    security_inter_broker_protocol = Property(
        "security.inter.broker.protocol", STRING, "PLAINTEXT",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="The listener at which the other brokers connect, if it has the name of its protocol. "
        "inter.broker.listener.name names any listener, and only one of the two may be set.",
    )
    sasl_mechanism_inter_broker_protocol = SecuredProperty(
        "sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", dynamic=True,
        doc="The mechanism with which brokers log in to each other: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, with "
        "username and password of that mechanism's sasl.jaas.config.",
    )
    num_replica_fetchers = Property(
        "num.replica.fetchers", INT, 1, at_least(1), dynamic=True,
        doc="The number of connections over which this broker fetches from each leader that it follows.",
    )
    replica_fetch_backoff_ms = Property(
        "replica.fetch.backoff.ms", INT, 1000, at_least(0),
        doc="The pause of a follower after an error.",
    )
    replica_fetch_max_bytes = Property(
        "replica.fetch.max.bytes", INT, 1_048_576, at_least(0),
        doc="The most bytes of one partition in an answer to a follower; a larger batch is sent whole.",
    )
    replica_fetch_min_bytes = Property(
        "replica.fetch.min.bytes", INT, 1,
        doc="The least bytes for which a leader answers a follower before replica.fetch.wait.max.ms is over.",
    )
    replica_fetch_response_max_bytes = Property(
        "replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0),
        doc="The most bytes of an answer to a follower; a first batch that is larger is sent whole.",
    )
    replica_fetch_wait_max_ms = Property(
        "replica.fetch.wait.max.ms", INT, 500,
        doc="The longest time for which a leader lets a follower wait for records. At most replica.lag.time.max.ms.",
    )
    replica_socket_timeout_ms = Property(
        "replica.socket.timeout.ms", INT, 30_000,
        doc="The time after which a follower takes a leader that does not answer for unreachable.",
    )
