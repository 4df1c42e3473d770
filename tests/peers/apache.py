"""A real Apache Kafka: one node, controller and broker in one process, formatted by its own tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.peers import java
from tests.peers.server import TOPIC_DEFAULTS, Server, accepts_connections, free_port, write_properties

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
# Tests end before a better compiler or collector would pay off.
OPTIONS = ("-Xmx512m", "-Xms256m", *java.FOR_SECONDS.split(), java.SHARED_CLASSES)


def prepare(
    directory: Path,
    properties: Mapping[str, str] = {},
    *,
    port: int | None = None,
    options: Sequence[str] = OPTIONS,
) -> Server:
    """A broker on a free port with its log under `directory`, not started yet. `options` are options of the JVM."""
    port = port or free_port()
    controller_port, jmx_port = free_port(), free_port()
    written = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(directory / "log"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    directory.mkdir(parents=True, exist_ok=True)
    configuration = directory / "server.properties"
    write_properties(configuration, written | TOPIC_DEFAULTS | dict(properties))
    if not (directory / "log" / "meta.properties").exists():
        sharing = [each for each in options if each == java.SHARED_CLASSES]
        options_of_tool = (*java.FOR_SECONDS.split(), *sharing)
        java.run(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(configuration), options=options_of_tool
        )
    return Server(
        kind="apache",
        command=java.command("kafka.Kafka", str(configuration), options=(*options, *_jmx_options(jmx_port))),
        port=port,
        jmx_port=jmx_port,
        log_dir=directory / "log",
        output=directory / "output.log",
        is_ready=_has_a_broker,
    )


def _jmx_options(port: int) -> list[str]:
    properties = {
        "com.sun.management.jmxremote.port": port,
        "com.sun.management.jmxremote.rmi.port": port,
        "com.sun.management.jmxremote.host": "127.0.0.1",
        "com.sun.management.jmxremote.authenticate": "false",
        "com.sun.management.jmxremote.ssl": "false",
        "java.rmi.server.hostname": "127.0.0.1",
    }
    return [f"-D{name}={value}" for name, value in properties.items()]


def _has_a_broker(server: Server) -> bool:
    """Wait until the broker is registered: Kafka listens earlier."""
    if not accepts_connections(server):
        return False
    try:
        return bool(AdminClient({"bootstrap.servers": server.bootstrap}).list_topics(timeout=2).brokers)
    except KafkaException:
        return False
