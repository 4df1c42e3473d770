"""Properties of topics, brokers and groups: describe, replace and change them, with all kinds of errors.

The script leaves out AlterConfigs with a resource named twice, because Apache Kafka 4.3.1 never responds to it.
"""

from __future__ import annotations

from odradek.protocol.messages import alter_configs as legacy
from odradek.protocol.messages import incremental_alter_configs as incremental
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.interop.differential.partitions import create
from tests.interop.differential.playing import Step, accepted

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
REPLICAS = "leader.replication.throttled.replicas"

Operation = tuple[str, int, str | None]

RELOGIN = "sasl.kerberos.min.time.before.relogin"
NO_SUCH_OPERATION = (
    "UNKNOWN_SERVER_ERROR there, as if the server had failed; INVALID_REQUEST here, as there for brokers"
)
ONLY_IN_THE_FILE = "how clients authenticate is not for clients to change; INVALID_REQUEST here"
CONTRADICTORY = "stored there, although the broker's own file may not say so; INVALID_REQUEST here"


def resource(kind: int, name: str, *operations: Operation) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(kind, name, [incremental.AlterableConfig(*each) for each in operations])


def change(kind: int, name: str, *operations: Operation, validate_only: bool = False, version: int = 1) -> Step:
    return changes(resource(kind, name, *operations), validate_only=validate_only, version=version)


def changes(*resources: incremental.AlterConfigsResource, validate_only: bool = False, version: int = 1) -> Step:
    return Step(incremental.IncrementalAlterConfigsRequest(list(resources), validate_only), version)


def replace(
    kind: int, name: str, configs: dict[str, str | None], validate_only: bool = False, version: int = 2
) -> Step:
    given = [legacy.AlterableConfig(key, value) for key, value in configs.items()]
    return replaces(legacy.AlterConfigsResource(kind, name, given), validate_only=validate_only, version=version)


def replaces(*resources: legacy.AlterConfigsResource, validate_only: bool = False, version: int = 2) -> Step:
    return Step(legacy.AlterConfigsRequest(list(resources), validate_only), version)


def describe(kind: int, name: str, *keys: str, version: int = 4) -> Step:
    wanted = [DescribeConfigsResource(kind, name, list(keys) or None)]
    return Step(DescribeConfigsRequest(wanted, include_synonyms=True), version, reads=True)


OF_TOPICS = [
    create("configured", 1, retention_ms="5000"),
    create("other", 1),
    describe(TOPIC, "configured"),
    change(TOPIC, "configured", ("retention.ms", SET, "6000"), ("max.message.bytes", SET, "2000"), version=0),
    describe(TOPIC, "configured", "retention.ms", "max.message.bytes", "no.such"),
    change(
        TOPIC, "configured", ("retention.ms", DELETE, None), ("segment.ms", DELETE, None), ("no.such", DELETE, None)
    ),
    change(TOPIC, "configured", ("cleanup.policy", APPEND, "compact")),
    describe(TOPIC, "configured", "cleanup.policy", "retention.ms"),
    change(TOPIC, "configured", ("cleanup.policy", APPEND, "compact,delete")),
    change(TOPIC, "configured", ("cleanup.policy", SUBTRACT, "delete")),
    describe(TOPIC, "configured", "cleanup.policy"),
    change(TOPIC, "configured", ("cleanup.policy", SUBTRACT, "delete")),
    change(TOPIC, "configured", ("cleanup.policy", SUBTRACT, "compact")),
    describe(TOPIC, "configured", "cleanup.policy"),
    change(TOPIC, "configured", ("cleanup.policy", SET, "compact,delete")),
    change(TOPIC, "configured", ("cleanup.policy", APPEND, "")),
    change(TOPIC, "configured", ("cleanup.policy", SUBTRACT, "")),
    change(TOPIC, "configured", ("cleanup.policy", SUBTRACT, "compact, delete")),
    describe(TOPIC, "configured", "cleanup.policy"),
    change(TOPIC, "configured", ("cleanup.policy", APPEND, ",compact")),
    change(TOPIC, "configured", ("cleanup.policy", APPEND, "compact,,")),
    change(TOPIC, "configured", ("cleanup.policy", SUBTRACT, "delete")),
    change(TOPIC, "configured", ("cleanup.policy", APPEND, " delete")),
    describe(TOPIC, "configured", "cleanup.policy"),
    change(TOPIC, "configured", (REPLICAS, SET, "0:1,0:1")),
    change(TOPIC, "configured", (REPLICAS, SUBTRACT, "0:1")),
    change(TOPIC, "configured", (REPLICAS, APPEND, "1:1")),
    describe(TOPIC, "configured", REPLICAS),
    change(TOPIC, "configured", (REPLICAS, DELETE, None)),
    change(TOPIC, "configured", ("cleanup.policy", DELETE, None)),
    change(TOPIC, "configured", ("cleanup.policy", SUBTRACT, "delete"), validate_only=True),
    change(TOPIC, "configured", ("retention.ms", APPEND, "5")),
    change(TOPIC, "configured", ("retention.ms", SUBTRACT, "5")),
    change(TOPIC, "configured", ("retention.ms", APPEND, None)),
    change(TOPIC, "configured", ("retention.ms", SET, None)),
    change(TOPIC, "configured", ("retention.ms", SET, "soon")),
    change(TOPIC, "configured", ("retention.ms", SET, "-2")),
    change(TOPIC, "configured", ("retention.ms", SET, "")),
    change(TOPIC, "configured", ("retention.ms", SET, " 7000 ")),
    change(TOPIC, "configured", ("no.such", SET, "1")),
    change(TOPIC, "configured", ("no.such", APPEND, "1")),
    change(TOPIC, "configured", ("log.retention.ms", SET, "1")),
    change(TOPIC, "configured", ("", SET, "1")),
    accepted(change(TOPIC, "configured", ("retention.ms", 7, "1")), NO_SUCH_OPERATION),
    accepted(change(TOPIC, "configured", ("retention.ms", -1, "1")), NO_SUCH_OPERATION),
    change(TOPIC, "configured", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    change(TOPIC, "configured", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
    change(TOPIC, "configured", ("cleanup.policy", SET, "shred")),
    change(TOPIC, "configured", ("cleanup.policy", APPEND, "shred")),
    change(TOPIC, "configured", ("cleanup.policy", SET, "delete,delete")),
    change(TOPIC, "configured", ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")),
    change(TOPIC, "configured", ("compression.type", SET, "none")),
    change(TOPIC, "configured", ("min.insync.replicas", SET, "0")),
    change(TOPIC, "configured", ("message.timestamp.type", SET, "Never")),
    change(TOPIC, "configured", ("leader.replication.throttled.replicas", SET, "0:1,x")),
    change(TOPIC, "configured", ("leader.replication.throttled.replicas", APPEND, "0:1")),
    change(TOPIC, "configured", ("remote.storage.enable", SET, "true")),
    change(TOPIC, "configured"),
    change(TOPIC, "missing", ("retention.ms", SET, "1")),
    change(TOPIC, "missing", ("retention.ms", SET, "soon")),
    change(TOPIC, "missing"),
    change(TOPIC, "bad name", ("retention.ms", SET, "1")),
    change(TOPIC, "", ("retention.ms", SET, "1")),
    change(TOPIC, "configured", ("retention.ms", SET, "8000"), validate_only=True),
    change(TOPIC, "configured", ("retention.ms", SET, "soon"), validate_only=True),
    changes(
        resource(TOPIC, "configured", ("retention.ms", SET, "9000")),
        resource(TOPIC, "other", ("retention.ms", SET, "soon")),
        resource(TOPIC, "missing", ("retention.ms", SET, "1")),
    ),
    changes(
        resource(TOPIC, "configured", ("retention.ms", SET, "1")),
        resource(TOPIC, "configured", ("segment.ms", SET, "1")),
        resource(TOPIC, "other", ("segment.ms", SET, "1")),
    ),
    changes(),
    describe(TOPIC, "configured"),
    describe(TOPIC, "other"),
    replace(TOPIC, "configured", {"segment.ms": "100000", "flush.ms": "9"}),
    describe(TOPIC, "configured"),
    *(replace(TOPIC, "configured", {"segment.ms": f"10000{version}"}, version=version) for version in range(3)),
    replace(TOPIC, "configured", {"segment.ms": None}),
    replace(TOPIC, "configured", {"segment.ms": "never"}),
    replace(TOPIC, "configured", {"no.such": "1"}),
    replace(TOPIC, "configured", {"flush.ms": "1"}, validate_only=True),
    replace(TOPIC, "missing", {"flush.ms": "1"}),
    replace(TOPIC, "missing", {}),
    replace(TOPIC, "bad name", {"flush.ms": "1"}),
    replace(TOPIC, "", {"flush.ms": "1"}),
    replaces(
        legacy.AlterConfigsResource(
            TOPIC, "other", [legacy.AlterableConfig("flush.ms", "1"), legacy.AlterableConfig("flush.ms", "1")]
        )
    ),
    describe(TOPIC, "configured"),
    replace(TOPIC, "configured", {}),
    describe(TOPIC, "configured"),
    describe(TOPIC, "missing"),
    describe(TOPIC, "bad name"),
    describe(TOPIC, ""),
]

OF_BROKERS = [
    describe(BROKER, ""),
    change(BROKER, "1", ("log.segment.bytes", SET, "2000000"), ("max.connection.creation.rate", SET, "500")),
    describe(BROKER, "1", "log.segment.bytes", "max.connection.creation.rate"),
    change(BROKER, "", ("log.segment.bytes", SET, "3000000"), ("log.flush.interval.ms", SET, "7000")),
    describe(BROKER, "1", "log.segment.bytes", "log.flush.interval.ms"),
    describe(BROKER, ""),
    create("under-broker-configs", 1),
    describe(TOPIC, "under-broker-configs", "segment.bytes", "flush.ms"),
    change(BROKER, "1", ("log.segment.bytes", DELETE, None)),
    describe(BROKER, "1", "log.segment.bytes"),
    describe(BROKER, "", "log.segment.bytes"),
    describe(BROKER, "", "min.insync.replicas"),
    *(describe(BROKER, "1", "min.insync.replicas", version=version) for version in range(1, 5)),
    describe(TOPIC, "under-broker-configs", "min.insync.replicas"),
    change(BROKER, "1", ("min.insync.replicas", SET, "1")),
    change(BROKER, "1", ("min.insync.replicas", DELETE, None)),
    change(BROKER, "", ("min.insync.replicas", DELETE, None)),
    change(BROKER, "", ("min.insync.replicas", SET, "0")),
    change(BROKER, "", ("min.insync.replicas", SET, "2")),
    describe(BROKER, "1", "min.insync.replicas"),
    describe(TOPIC, "under-broker-configs", "min.insync.replicas"),
    change(TOPIC, "under-broker-configs", ("min.insync.replicas", SET, "1")),
    describe(TOPIC, "under-broker-configs", "min.insync.replicas"),
    change(BROKER, "", ("min.insync.replicas", SET, "1")),
    replace(BROKER, "1", {"min.insync.replicas": "1"}),
    change(BROKER, "1", (RELOGIN, SET, "58000")),
    change(BROKER, "", (RELOGIN, SET, "58000")),
    change(BROKER, "1", (RELOGIN, SET, "soon")),
    describe(BROKER, "1", RELOGIN),
    change(BROKER, "1", (RELOGIN, DELETE, None)),
    describe(BROKER, "1", RELOGIN, "num.io.threads", "ssl.keystore.password", "log.local.retention.ms"),
    change(BROKER, "", ("num.io.threads", SET, "9"), ("log.local.retention.ms", SET, "1000000")),
    describe(BROKER, "1", "num.io.threads", "log.local.retention.ms"),
    describe(TOPIC, "under-broker-configs", "local.retention.ms"),
    change(BROKER, "", ("num.io.threads", DELETE, None), ("log.local.retention.ms", DELETE, None)),
    accepted(change(BROKER, "1", ("sasl.enabled.mechanisms", APPEND, "PLAIN"), validate_only=True), ONLY_IN_THE_FILE),
    change(BROKER, "1", ("ssl.keystore.password", SET, "secret")),
    change(BROKER, "1", ("process.roles", SET, "broker")),
    describe(TOPIC, "under-broker-configs", "segment.bytes"),
    change(BROKER, "1", ("log.cleanup.policy", APPEND, "compact")),
    describe(BROKER, "1", "log.cleanup.policy"),
    change(BROKER, "1", ("log.cleanup.policy", SUBTRACT, "delete")),
    describe(BROKER, "1", "log.cleanup.policy"),
    change(BROKER, "1", ("log.cleanup.policy", DELETE, None)),
    change(BROKER, "1", ("node.id", SET, "2")),
    change(BROKER, "1", ("node.id", DELETE, None)),
    change(BROKER, "1", ("log.dirs", SET, "/elsewhere")),
    change(BROKER, "1", ("log.retention.hours", SET, "1")),
    accepted(change(BROKER, "1", ("log.retention.ms", SET, "-2")), CONTRADICTORY),
    change(BROKER, "1", ("log.retention.ms", SET, "0")),
    change(BROKER, "1", ("log.retention.ms", SET, "soon")),
    change(BROKER, "1", ("log.retention.ms", APPEND, "1")),
    change(BROKER, "1", ("log.retention.ms", SET, None)),
    change(BROKER, "1", ("log.retention.ms", 9, "1")),
    change(BROKER, "1", ("no.such", DELETE, None)),
    change(BROKER, "1", ("max.connections", SET, "-1")),
    change(BROKER, "1", ("max.connections.per.ip.overrides", SET, "127.0.0.1")),
    change(BROKER, "1", ("max.connections.per.ip.overrides", SET, "127.0.0.1:many")),
    change(BROKER, "1", ("message.max.bytes", SET, "5000"), validate_only=True),
    change(BROKER, "1", ("message.max.bytes", SET, "5000"), ("message.max.bytes", SET, "5001")),
    change(BROKER, "2", ("message.max.bytes", SET, "5000")),
    change(BROKER, "one", ("message.max.bytes", SET, "5000")),
    change(BROKER, "-1", ("message.max.bytes", SET, "5000")),
    accepted(
        change(
            BROKER,
            "1",
            ("log.cleaner.min.compaction.lag.ms", SET, "10"),
            ("log.cleaner.max.compaction.lag.ms", SET, "5"),
        ),
        CONTRADICTORY,
    ),
    change(3, "x", ("a", SET, "1")),
    change(0, "x", ("a", SET, "1")),
    change(LOGGER, "2", ("root", SET, "INFO")),
    change(LOGGER, "one", ("root", SET, "INFO")),
    change(LOGGER, "1", ("no.such.logger", SET, "INFO")),
    change(LOGGER, "1", ("root", SET, "LOUD")),
    change(LOGGER, "1", ("root", APPEND, "INFO")),
    change(LOGGER, "1", ("root", DELETE, None)),
    change(LOGGER, "", ("root", SET, "INFO")),
    replace(LOGGER, "1", {"root": "INFO"}),
    change(LOGGER, "1", ("root", SET, "TRACE"), validate_only=True),
    change(LOGGER, "1", ("root", SET, "ERROR")),
    describe(LOGGER, "1", "root"),
    change(LOGGER, "1", ("root", SET, "WARN"), ("no.such.logger", SET, "INFO")),
    change(LOGGER, "1", ("root", SUBTRACT, "ERROR")),
    change(LOGGER, "1", ("no.such.logger", DELETE, None)),
    accepted(change(LOGGER, "1", ("root", 9, "ERROR")), NO_SUCH_OPERATION),
    describe(LOGGER, "1", "root"),
    change(LOGGER, "1", ("root", SET, "INFO")),
    replace(3, "x", {"a": "1"}),
    replace(BROKER, "1", {"log.roll.ms": "77777"}),
    describe(BROKER, "1", "log.roll.ms", "max.connection.creation.rate"),
    replace(BROKER, "", {"log.roll.ms": "88888"}),
    describe(BROKER, ""),
    replace(BROKER, "1", {"node.id": "2"}),
    replace(BROKER, "2", {"log.roll.ms": "77777"}),
    replace(BROKER, "1", {"log.roll.ms": None}),
    replace(BROKER, "1", {"log.roll.ms": "1"}, validate_only=True),
    replace(BROKER, "1", {}),
    replace(BROKER, "", {}),
    describe(BROKER, ""),
    describe(BROKER, "1", "log.roll.ms"),
    describe(BROKER, "2"),
    describe(BROKER, "one"),
    describe(3, "x"),
    describe(LOGGER, ""),
    describe(LOGGER, "2"),
    describe(LOGGER, "one"),
    describe(LOGGER, "1", "no.such.logger"),
    describe(CLIENT_METRICS, ""),
    describe(GROUP, ""),
]

SESSION, HEARTBEAT, ASSIGNMENT = (
    f"consumer.{what}.ms" for what in ("session.timeout", "heartbeat.interval", "assignment.interval")
)
OTHER_GROUPS = "there are no share and streams groups here: their properties are refused, and not described"

OF_GROUPS = [
    accepted(describe(GROUP, "g"), OTHER_GROUPS),
    *(describe(GROUP, "g", SESSION, HEARTBEAT, ASSIGNMENT, version=version) for version in range(1, 5)),
    change(GROUP, "g", (SESSION, SET, "50000"), (HEARTBEAT, SET, "6000"), version=0),
    describe(GROUP, "g", SESSION, HEARTBEAT, ASSIGNMENT, "no.such"),
    change(BROKER, "", ("group.consumer.assignment.interval.ms", SET, "3000")),
    describe(GROUP, "g", ASSIGNMENT),
    change(BROKER, "1", ("group.consumer.assignment.interval.ms", SET, "4000")),
    describe(GROUP, "g", ASSIGNMENT),
    change(GROUP, "g", (ASSIGNMENT, SET, "5000")),
    describe(GROUP, "g", ASSIGNMENT),
    change(BROKER, "", ("group.consumer.assignment.interval.ms", DELETE, None)),
    change(BROKER, "1", ("group.consumer.assignment.interval.ms", DELETE, None)),
    *(change(GROUP, "g", (SESSION, SET, value)) for value in ("0", "1", "44999", "60001", "soon", "", "-1")),
    *(change(GROUP, "g", (HEARTBEAT, SET, value)) for value in ("0", "4999", "15001")),
    *(change(GROUP, "g", (ASSIGNMENT, SET, value)) for value in ("-1", "15001", "0")),
    change(GROUP, "g", (SESSION, SET, " 51000 ")),
    change(GROUP, "g", (SESSION, SET, None)),
    change(GROUP, "g", (SESSION, APPEND, "1")),
    change(GROUP, "g", ("no.such", SUBTRACT, "1")),
    change(GROUP, "g", ("no.such", SET, "1")),
    change(GROUP, "g", ("no.such", DELETE, None)),
    change(GROUP, "g", (f"group.{SESSION}", SET, "50000")),
    accepted(change(GROUP, "g", (SESSION, 9, "50000")), NO_SUCH_OPERATION),
    change(GROUP, "g", (SESSION, SET, "50000"), (SESSION, DELETE, None)),
    change(GROUP, "", (SESSION, SET, "50000")),
    change(GROUP, ""),
    change(GROUP, "another"),
    change(GROUP, "another", (SESSION, SET, "50000"), validate_only=True),
    change(GROUP, "another", (SESSION, SET, "1"), validate_only=True),
    change(GROUP, "a group/of ours", (SESSION, SET, "50000")),
    describe(GROUP, "a group/of ours", SESSION),
    accepted(change(GROUP, "sharing", ("share.session.timeout.ms", SET, "50000")), OTHER_GROUPS),
    accepted(replace(GROUP, "sharing", {"streams.session.timeout.ms": "50000"}), OTHER_GROUPS),
    replace(GROUP, "sharing", {}),
    Step(ListConfigResourcesRequest([GROUP]), 1, reads=True),
    replace(GROUP, "g", {HEARTBEAT: "6000"}),
    describe(GROUP, "g", SESSION, HEARTBEAT, ASSIGNMENT),
    replace(GROUP, "g", {HEARTBEAT: None}),
    replace(GROUP, "g", {"no.such": "1"}),
    replace(GROUP, "", {HEARTBEAT: "6000"}),
    replace(GROUP, "g", {SESSION: "50000"}, validate_only=True),
    *(replace(GROUP, each, {}) for each in ("g", "a group/of ours")),
    describe(GROUP, "g", SESSION, HEARTBEAT, ASSIGNMENT),
    Step(ListConfigResourcesRequest([GROUP]), 1, reads=True),
]
