"""Properties of sockets, connections and requests."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least
from odradek.broker.config.endpoints import ENDPOINTS, Endpoint
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import INT, LONG, STRING, nullable

_NO_LIMIT = 0x7FFF_FFFF  # Java's Integer.MAX_VALUE


# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class NetworkProperties(Table):
    """Listeners, connections, requests."""

    listeners = Property(
        "listeners", ENDPOINTS, [Endpoint("PLAINTEXT", "127.0.0.1", 9092)],
        doc="Where the broker listens: NAME://host:port, ... No host: every interface; port 0: any free one.",
        differs="there the default is every interface; a broker without access rules is better on loopback.",
    )
    advertised_listeners = Property(
        "advertised.listeners", nullable(ENDPOINTS), None,
        doc="The addresses that clients are told, one for each listener. Unset: each is told the one that it dialled.",
    )
    listener_security_protocol_map = Property(
        "listener.security.protocol.map", STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        doc="The security protocol of each listener name. Only listeners with PLAINTEXT can be served so far.",
    )
    socket_listen_backlog_size = Property(
        "socket.listen.backlog.size", INT, 50, at_least(1), doc="How many connections may wait to be accepted."
    )
    socket_send_buffer_bytes = Property(
        "socket.send.buffer.bytes", INT, 212_992,
        doc="The size of a connection's send buffer; -1 leaves it to the system.",
        differs="there 102400; twice as much sends large answers faster, one that the system lets grow does not.",
    )
    socket_receive_buffer_bytes = Property(
        "socket.receive.buffer.bytes", INT, -1,
        doc="The size of a connection's receive buffer; -1 leaves it to the system.",
        differs="there 102400; one that the system lets grow takes large batches 1.5 times as fast at half the CPU.",
    )
    socket_request_max_bytes = Property(
        "socket.request.max.bytes", INT, 104_857_600, at_least(1),
        doc="A connection that sends a larger request is closed."
    )
    queued_max_request_bytes = Property(
        "queued.max.request.bytes", LONG, 536_870_912,
        doc="How many bytes of requests over 64 KiB all connections together receive and execute at a time; beyond it "
        "one such request is received after the other. Below 0: no limit.",
        differs="there -1; requests of many connections could take all memory.",
    )
    socket_request_without_records_max_bytes = Property(
        "socket.request.without.records.max.bytes", INT, 1_048_576, at_least(1024), own=True,
        doc="A connection that sends a larger request of any other kind than Produce is closed. A Fetch of 31,000 "
        "partitions is as large, a commit of 58,000 offsets.",
    )
    max_incremental_fetch_session_cache_partitions = Property(
        "max.incremental.fetch.session.cache.partitions", INT, 100_000, at_least(0), own=True,
        doc="How many partitions all incremental fetch sessions together have at most.",
    )
    connections_max_idle_ms = Property(
        "connections.max.idle.ms", LONG, 600_000,
        doc="A connection without traffic for so long is closed; below 0: never."
    )
    max_connections = Property(
        "max.connections", INT, _NO_LIMIT, at_least(0), dynamic=True,
        doc="How many connections the broker keeps open, if it has descriptors for them; further ones wait.",
    )
    max_connections_per_ip = Property(
        "max.connections.per.ip", INT, _NO_LIMIT, at_least(0), dynamic=True,
        doc="How many connections one address may have; further ones are closed at once.",
    )
    max_connections_per_ip_overrides = Property(
        "max.connections.per.ip.overrides", STRING, "", dynamic=True,
        doc="Other limits for some addresses: host:count, with commas between.",
    )
    fetch_max_bytes = Property(
        "fetch.max.bytes", INT, 57_671_680, at_least(1024),
        doc="The most that one Fetch returns, whatever it asks for; a first batch that is larger is still returned.",
    )
    max_request_partition_size_limit = Property(
        "max.request.partition.size.limit", INT, 2000, at_least(1),
        doc="The most partitions that one DescribeTopicPartitions returns.",
    )
    max_incremental_fetch_session_cache_slots = Property(
        "max.incremental.fetch.session.cache.slots", INT, 1_000, at_least(0),
        doc="How many incremental fetch sessions (KIP-227) are kept.",
    )
