"""Random sequences of administration: topics, partitions, properties, quotas, SCRAM users.

`test_access_rules` does the same for access rules, for which both servers need users.

Most values are valid; the others are those that a parser or a bound may treat in another way. Requests that change
something are followed by a description of everything that the sequence may have changed.
"""

from __future__ import annotations

import random
from typing import Any

from odradek.protocol.messages import alter_configs as legacy
from odradek.protocol.messages import incremental_alter_configs as incremental
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.quotas import ANY, describe, entry
from tests.interop.differential.random_playing import Act, Kind, Request, Side

TOPIC, BROKER, GROUP = 2, 4, 32
TOPICS = ["t", "u", "v"]
USERS = ["alice", "bob"]

_LONGS = [
    "-2",
    "-1",
    "0",
    "1",
    "1000",
    "9223372036854775807",
    "9223372036854775808",
    " 5 ",
    "+5",
    "1.5",
    "0x10",
    "",
    "x",
]
_INTS = ["-1", "0", "1", "1000", "2147483647", "2147483648", "1_000", ""]
_SHARES = ["0", "1", "0.5", "1.0001", "-0.1", "NaN", "1e-3", "Infinity", ".5", "0,5", ""]
_FLAGS = ["true", "false", "TRUE", " false", "yes", "", "1"]
_TOPIC_VALUES = {
    "cleanup.policy": ["delete", "compact", "delete,compact", " compact , delete ", "", "Delete", "delete,delete", ","],
    "compression.type": ["producer", "zstd", "lz4", "uncompressed", "none", "GZIP", ""],
    "compression.gzip.level": ["-1", "0", "1", "9", "10"],
    "compression.lz4.level": ["0", "1", "17", "18"],
    "compression.zstd.level": ["-131073", "-131072", "0", "22", "23"],
    "delete.retention.ms": _LONGS,
    "file.delete.delay.ms": _LONGS,
    "flush.messages": _LONGS,
    "index.interval.bytes": _INTS,
    "max.compaction.lag.ms": _LONGS,
    "max.message.bytes": _INTS,
    "message.timestamp.after.max.ms": _LONGS,
    "message.timestamp.type": ["CreateTime", "LogAppendTime", "createtime", "Never", ""],
    "min.cleanable.dirty.ratio": _SHARES,
    "min.compaction.lag.ms": _LONGS,
    "min.insync.replicas": _INTS,
    "preallocate": _FLAGS,
    "retention.bytes": _LONGS,
    "retention.ms": _LONGS,
    "segment.index.bytes": ["3", "4", "1000", "x"],
    "segment.jitter.ms": _LONGS,
    "segment.ms": _LONGS,
    "unclean.leader.election.enable": _FLAGS,
    "follower.replication.throttled.replicas": ["*", "0:1", "0:1,1:1", "0:", "x", ""],
    "no.such.property": ["1"],
}
_BROKER_VALUES = {
    "log.retention.bytes": ["-1", "1000000", "x", ""],
    "log.cleaner.min.cleanable.ratio": _SHARES,
    "log.index.interval.bytes": _INTS,
    "log.flush.interval.messages": ["0", "1000000", "9223372036854775808"],
    "node.id": ["2"],
}
_GROUP_VALUES = {
    "consumer.session.timeout.ms": ["44999", "45000", "60000", "60001", "x", ""],
    "consumer.heartbeat.interval.ms": ["4999", "5000", "15000", "15001"],
    "consumer.assignment.interval.ms": ["-1", "0", "15000", "15001"],
    "no.such.property": ["1"],
}
_VALUES = {TOPIC: _TOPIC_VALUES, BROKER: _BROKER_VALUES, GROUP: _GROUP_VALUES}
_QUOTAS = {
    "producer_byte_rate": [1.0, 1000.0, 0.5, -1.0, 0.0, 9.3e18, 1e300],
    "consumer_byte_rate": [1e6, 1.25],
    "request_percentage": [50.5, -5.0, 1e9],
    "connection_creation_rate": [5.0],
    "no_such_quota": [1.0],
}


def _resource_name(side: Side, kind: int, name: str) -> str:
    return name if kind == BROKER or not name else f"{side.prefix}-{name}"


def _names(side: Side, names: list[str]) -> list[str]:
    """Names of topics or users; a literal one begins with '='."""
    return [name[1:] if name.startswith("=") else f"{side.prefix}-{name}" for name in names]


def _create(side: Side, act: Act) -> Request:
    topics = [
        CreatableTopic(
            *_names(side, [topic["name"]]),
            topic["partitions"],
            topic["replicas"],
            [CreatableReplicaAssignment(index, brokers) for index, brokers in topic["assigned"].items()],
            [CreatableTopicConfig(key, value) for key, value in topic["configs"]],
        )
        for topic in act.fields["topics"]
    ]
    return CreateTopicsRequest(topics, 30_000, act.fields["validate_only"]), 7


def _grow(side: Side, act: Act) -> Request:
    topics = []
    for name, count, assigned in act.fields["topics"]:
        given = None if assigned is None else [CreatePartitionsAssignment(brokers) for brokers in assigned]
        topics.append(CreatePartitionsTopic(*_names(side, [name]), count, given))
    return CreatePartitionsRequest(topics, 30_000, act.fields["validate_only"]), 3


def _delete(side: Side, act: Act) -> Request:
    return DeleteTopicsRequest(topic_names=_names(side, act.fields["names"]), timeout_ms=30_000), 5


def _alter(side: Side, act: Act) -> Request:
    resources = [
        legacy.AlterConfigsResource(
            kind, _resource_name(side, kind, name), [legacy.AlterableConfig(key, value) for key, _, value in rows]
        )
        for kind, name, rows in act.fields["resources"]
    ]
    return legacy.AlterConfigsRequest(resources, act.fields["validate_only"]), 2


def _incremental(side: Side, act: Act) -> Request:
    resources = [
        incremental.AlterConfigsResource(
            kind, _resource_name(side, kind, name), [incremental.AlterableConfig(*row) for row in rows]
        )
        for kind, name, rows in act.fields["resources"]
    ]
    return incremental.IncrementalAlterConfigsRequest(resources, act.fields["validate_only"]), 1


def _quotas(side: Side, act: Act) -> Request:
    entries = [
        entry([(kind, name and f"{side.prefix}-{name}") for kind, name in parts], *limits)
        for parts, limits in act.fields["entries"]
    ]
    return AlterClientQuotasRequest(entries, act.fields["validate_only"]), 1


def _scram(side: Side, act: Act) -> Request:
    deletions = [
        ScramCredentialDeletion(*_names(side, [name]), mechanism) for name, mechanism in act.fields["deletions"]
    ]
    upsertions = [
        ScramCredentialUpsertion(*_names(side, [name]), mechanism, iterations, b"salt", password)
        for name, mechanism, password, iterations in act.fields["upsertions"]
    ]
    return AlterUserScramCredentialsRequest(deletions, upsertions), 0


def _everything(wants: str) -> Any:
    """Return a function that describes what acts of this kind may have changed."""

    async def settled(side: Side) -> Any:
        return await _DESCRIPTIONS[wants](side)

    return lambda act: settled


async def _topics(side: Side) -> Any:
    wanted = [MetadataRequestTopic(name=name) for name in _names(side, TOPICS)]
    answer = await side.ask(MetadataRequest(wanted, allow_auto_topic_creation=False), 12)
    side.note(answer)
    return [answer.topics, await _configs(side)]


async def _configs(side: Side) -> Any:
    resources = [DescribeConfigsResource(TOPIC, name, list(_TOPIC_VALUES)) for name in _names(side, TOPICS)]
    resources += [DescribeConfigsResource(BROKER, name, [*_BROKER_VALUES][:-1]) for name in ("1", "")]
    resources += [DescribeConfigsResource(GROUP, name, list(_GROUP_VALUES)) for name in _names(side, ["g"])]
    return await side.ask(DescribeConfigsRequest(resources, include_synonyms=True), 4)


async def _limits(side: Side) -> Any:
    found = []
    for kind in ("user", "client-id"):
        answer = await side.ask(describe((kind, ANY, None)), 1)
        for each in answer.entries or []:
            entity = sorted((part.entity_type, str(part.entity_name)) for part in each.entity)
            if any(name.startswith(f"{side.prefix}-") for _, name in entity):
                found.append(str((entity, sorted((value.key, value.value) for value in each.values))))
    return sorted(found)


async def _users(side: Side) -> Any:
    users = [UserName(name) for name in _names(side, USERS)]
    return await side.ask(DescribeUserScramCredentialsRequest(users), 0)


_DESCRIPTIONS = {"topics": _topics, "quotas": _limits, "users": _users}
KINDS = {
    "create": Kind(_create, settled=_everything("topics")),
    "grow": Kind(_grow, settled=_everything("topics")),
    "delete": Kind(_delete, settled=_everything("topics")),
    "alter": Kind(_alter, settled=_everything("topics")),
    "incremental": Kind(_incremental, settled=_everything("topics")),
    "quotas": Kind(_quotas, settled=_everything("quotas")),
    "scram": Kind(_scram, settled=_everything("users")),
}


class _Source:
    """Makes the fields of acts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _some(self, make: Any, most: int = 3) -> list[Any]:
        return [make() for _ in range(self._random.randint(1, most))]

    def _name(self) -> str:
        return (
            self._random.choice(TOPICS)
            if self._random.random() < 0.9
            else self._random.choice(["=", "=a b", "missing"])
        )

    def _config(self, kind: int) -> tuple[str, str | None]:
        key = self._random.choice(list(_VALUES[kind]))
        return key, self._random.choice(
            [*_VALUES[kind][key], None] if self._random.random() < 0.2 else _VALUES[kind][key]
        )

    def _topic(self) -> dict[str, Any]:
        assigned = {}
        partitions, replicas = self._random.choice([(1, 1), (3, 1), (-1, -1), (0, 1), (1, 2), (-2, 1), (2, 0)])
        if self._random.random() < 0.15:
            partitions, replicas = self._random.choice([(-1, -1), (-1, -1), (1, 1)])
            assigned = self._random.choice([{0: [1]}, {0: [1], 1: [1]}, {1: [1]}, {0: []}, {0: [1, 1]}, {0: [7]}])
        configs = [self._config(TOPIC) for _ in range(self._random.choice([0, 0, 1]))]
        counts = {"partitions": partitions, "replicas": replicas}
        return {"name": self._name(), **counts, "assigned": assigned, "configs": configs}

    def _resource(self) -> tuple[int, str, list[tuple[str, int, str | None]]]:
        kind = self._random.choice([TOPIC, TOPIC, TOPIC, BROKER, GROUP])
        names = {TOPIC: [*TOPICS, *TOPICS, "missing"], BROKER: ["1", "", "", "2", "x"], GROUP: ["g"]}
        rows = []
        for _ in range(self._random.choice([0, 1, 1, 1, 1])):  # of several wrong ones Kafka names any
            key, value = self._config(kind)
            rows.append((key, self._random.choice([0, 0, 0, 1, 2, 3]), value))
        return kind, self._random.choice(names[kind]), rows

    def fields(self, kind: str) -> dict[str, Any]:
        choose, validate_only = self._random.choice, self._random.random() < 0.2
        match kind:
            case "create":
                return {"topics": self._some(self._topic, 2), "validate_only": validate_only}
            case "grow":
                counts, assigned = [0, 1, 2, 3, 4, 6, -1], [None, None, None, [[1]], [[1], [1]], [[7]], []]
                rows = self._some(lambda: (self._name(), choose(counts), choose(assigned)), 2)
                return {"topics": rows, "validate_only": validate_only}
            case "delete":
                return {"names": self._some(self._name, 2)}
            case "alter" | "incremental":
                # Apache Kafka never answers AlterConfigs that names a resource twice.
                resources = {each[:2]: each for each in self._some(self._resource, 2)}
                return {"resources": list(resources.values()), "validate_only": validate_only}
            case "quotas":
                return {"entries": self._some(self._entry, 2), "validate_only": validate_only}
        users = [*USERS, *USERS, "="]
        iterations = [4096, 4096, 4095, 16384, 16385, -1]
        upsertions = self._some(
            lambda: (choose(users), *choose([(1, b"p" * 32), (2, b"p" * 64), (0, b""), (3, b"")]), choose(iterations))
        )
        deletions = (
            self._some(lambda: (choose(users), choose([1, 1, 2, 2, 0, 3]))) if self._random.random() < 0.4 else []
        )
        return {"deletions": deletions, "upsertions": upsertions if self._random.random() < 0.8 else []}

    def _entry(self) -> tuple[list[tuple[str, str | None]], list[tuple[str, float | None]]]:
        users, clients = ("user", self._random.choice(USERS)), ("client-id", "c")
        parts = self._random.choice([[users], [users], [users, clients], [clients], [users, ("user", "bob")], []])
        names = self._random.sample(list(_QUOTAS), self._random.choice([0, 1, 1, 2]))
        return parts, [(name, self._random.choice([*_QUOTAS[name], None])) for name in names]


def sequence(seed: int, length: int) -> list[Act]:
    """Return acts of all kinds."""
    source, chosen = _Source(seed), random.Random(seed)
    weights = [4, 2, 2, 2, 6, 3, 3]
    kinds = ["create", *chosen.choices(list(KINDS), weights, k=length - 1)]
    return [Act(number, kind, 0, source.fields(kind)) for number, kind in enumerate(kinds)]


def is_fixed(_: Act) -> bool:
    """Return whether a sequence cannot do without this act: it can without any."""
    return False
