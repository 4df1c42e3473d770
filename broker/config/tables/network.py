"""Properties of sockets, connections and requests."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least
from odradek.broker.config.endpoints import ENDPOINTS, Endpoint
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import INT, LONG, STRING, nullable

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class NetworkProperties(Table):
    """Listeners, connections and requests."""

    listeners = Property(
        "listeners", ENDPOINTS, [Endpoint("PLAINTEXT", "127.0.0.1", 9092)],
        doc="The addresses on which the broker listens: NAME://host:port, ... No host: every interface; port 0: any "
        "free one.",
        differs="its default is every interface; without access rules, loopback is safer.",
    )
    advertised_listeners = Property(
        "advertised.listeners", nullable(ENDPOINTS), None,
        doc="The addresses that clients connect to, one for each listener. Unset: for each client the address that it "
        "connected to; with TLS the name in `listeners`, if it has one. For other workers of the machine: that host,"
        " and their ports.",
    )
    listener_security_protocol_map = Property(
        "listener.security.protocol.map", STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        doc="The security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    socket_listen_backlog_size = Property(
        "socket.listen.backlog.size", INT, 50, at_least(1),
        doc="The most connections that wait to be accepted.",
    )
    socket_send_buffer_bytes = Property(
        "socket.send.buffer.bytes", INT, 212_992,
        doc="The size of a connection's send buffer; -1: the system's default.",
        differs="its default is 102400; twice that sends large responses faster, and faster than a buffer that the "
        "system resizes.",
    )
    socket_receive_buffer_bytes = Property(
        "socket.receive.buffer.bytes", INT, -1,
        doc="The size of a connection's receive buffer; -1: the system's default.",
        differs="its default is 102400; a buffer that the system resizes receives large batches 1.5 times as fast "
        "with half the CPU.",
    )
    socket_request_max_bytes = Property(
        "socket.request.max.bytes", INT, 104_857_600, at_least(1),
        doc="The largest request; a connection that sends a larger one is closed.",
    )
    queued_max_request_bytes = Property(
        "queued.max.request.bytes", LONG, 536_870_912,
        doc="The most bytes of requests over 64 KiB that all connections together receive and execute at a time; "
        "above it, such requests are received one after another. Negative: no limit.",
        differs="its default is -1; then the requests of many connections can take all memory.",
    )
    socket_request_without_records_max_bytes = Property(
        "socket.request.without.records.max.bytes", INT, 1_048_576, at_least(1024), own=True,
        doc="The largest request other than Produce; a connection that sends a larger one is closed. A Fetch of "
        "31,000 partitions has this size, or a commit of 58,000 offsets.",
    )
    socket_response_max_bytes = Property(
        "socket.response.max.bytes", INT, 100_000_000, at_least(65_536), own=True,
        doc="The largest answer other than that of Fetch; a request with a larger one is refused with "
        "INVALID_REQUEST. librdkafka reads no larger ones than the default.",
    )
    queued_max_response_bytes = Property(
        "queued.max.response.bytes", LONG, 536_870_912, own=True,
        doc="The most bytes of answers over 64 KiB that all connections together wait for; above it, the connection "
        "that has read nothing of its answer for longest is closed. Negative: no limit.",
    )
    max_incremental_fetch_session_cache_partitions = Property(
        "max.incremental.fetch.session.cache.partitions", INT, 100_000, at_least(0), own=True,
        doc="The most partitions in all incremental fetch sessions together.",
    )
    connections_max_idle_ms = Property(
        "connections.max.idle.ms", LONG, 600_000,
        doc="The time after which a connection without traffic is closed; negative: never.",
    )
    max_connections_per_ip = Property(
        "max.connections.per.ip", INT, 500, at_least(0), dynamic=True,
        doc="The most connections of one address; further ones are closed at once. The default does not hold for "
        "loopback.",
        differs="its default is 2147483647; one address should not take all connections.",
    )
    max_connections_per_ip_overrides = Property(
        "max.connections.per.ip.overrides", STRING, "", dynamic=True,
        doc="Other limits for some addresses: host:count, separated by commas.",
    )
    fetch_max_bytes = Property(
        "fetch.max.bytes", INT, 57_671_680, at_least(1024),
        doc="The most bytes that one Fetch returns, whatever the client requests; a larger first batch is returned "
        "nevertheless.",
    )
    max_request_partition_size_limit = Property(
        "max.request.partition.size.limit", INT, 2000, at_least(1),
        doc="The most partitions that one DescribeTopicPartitions returns.",
    )
    max_incremental_fetch_session_cache_slots = Property(
        "max.incremental.fetch.session.cache.slots", INT, 1_000, at_least(0),
        doc="The most incremental fetch sessions (KIP-227).",
    )


_NO_LIMIT = 0x7FFF_FFFF  # Java's Integer.MAX_VALUE


class ListenerLimitProperties(Table):
    """Limits of all listeners together, or of one: `listener.name.<listener>.<property>`."""

    max_connections = Property(
        "max.connections", INT, 2000, at_least(0), dynamic=True,
        doc="The most open connections, if there are descriptors for them; further ones wait.",
        differs="its default is 2147483647; one event loop serves them all.",
    )
    max_connection_creation_rate = Property(
        "max.connection.creation.rate", INT, _NO_LIMIT, at_least(0), dynamic=True,
        doc="The most connections that are accepted in a second; further ones wait. 0 counts as 1.",
    )
