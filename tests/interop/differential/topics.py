"""Topics: create, delete and describe them by name and id; the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.interop.differential.partitions import offsets
from tests.interop.differential.playing import Seen, Step

AN_ID = bytes(range(16))


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assignments: Mapping[int, list[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name,
        partitions,
        replicas,
        [CreatableReplicaAssignment(*each) for each in (assignments or {}).items()],
        [CreatableTopicConfig(*each) for each in (configs or {}).items()],
    )


def create(*topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> Step:
    return Step(CreateTopicsRequest(list(topics), 5000, validate_only), version)


def delete(*names: str, version: int = 5) -> Step:
    return Step(DeleteTopicsRequest(topic_names=list(names), timeout_ms=5000), version)


def delete_states(*states: tuple[str | None, str | None]) -> Step:
    """Delete by names and ids; an id is given as the topic's name, `?` is an unknown id, None no id."""

    def request(seen: Seen) -> DeleteTopicsRequest:
        ids = {None: bytes(16), "?": AN_ID, **seen.topic_ids}
        return DeleteTopicsRequest([DeleteTopicState(name, ids[of]) for name, of in states], timeout_ms=5000)

    return Step(request, 6)


def metadata(*names: str, version: int = 12) -> Step:
    wanted = [MetadataRequestTopic(name=name) for name in names]
    return Step(MetadataRequest(wanted, allow_auto_topic_creation=False), version, reads=True)


def cluster(endpoint_type: int = 1, version: int = 2) -> Step:
    return Step(DescribeClusterRequest(True, endpoint_type), version, reads=True)


CREATING = [
    *(create(topic(f"created-{version}", 2), version=version) for version in range(2, 8)),
    create(topic("created-2")),
    create(topic("created.2")),
    create(topic("created_2")),
    create(topic("asked-for-defaults", -1, -1)),
    create(topic("assigned", -1, -1, {0: [1], 1: [1]})),
    create(topic("configured-at-birth", configs={"retention.ms": "5000", "cleanup.policy": "compact,delete"})),
    *(create(topic(name)) for name in ("", ".", "..", "bad name", "n" * 250, "ä", "a/b", "__cluster_metadata")),
    *(create(topic("refused", count)) for count in (0, -2, -100)),
    *(create(topic("refused", 1, count)) for count in (0, -2, 2, 3)),
    create(topic("refused", 10_001)),
    create(topic("refused", 1, -1, {0: [1]})),
    create(topic("refused", -1, 1, {0: [1]})),
    create(topic("refused", 2, 1, {0: [1]})),
    create(topic("refused", -1, -1, {1: [1]})),
    create(topic("refused", -1, -1, {0: [1], 2: [1]})),
    create(topic("refused", -1, -1, {-1: [1]})),
    create(topic("refused", -1, -1, {0: []})),
    create(topic("refused", -1, -1, {0: [2]})),
    create(topic("refused", -1, -1, {0: [1, 1]})),
    create(topic("refused", -1, -1, {0: [1], 1: [1, 2]})),
    create(topic("refused", configs={"retention.ms": "soon"})),
    create(topic("refused", configs={"retention.ms": None})),
    create(topic("refused", configs={"no.such": "1"})),
    create(topic("refused", configs={"log.retention.ms": "1"})),
    create(topic("refused", configs={"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"})),
    create(topic("refused", configs={"remote.storage.enable": "true"})),
    create(topic("twice"), topic("twice"), topic("once")),
    create(topic("bad name", 0, 0), topic("refused", 0, 9, configs={"no.such": "1"})),
    create(topic("validated", 3), topic("created-2"), topic("bad name"), validate_only=True),
    create(topic("validated", 3, configs={"flush.ms": "7"}), version=4, validate_only=True),
    create(topic("validated", 0), version=2, validate_only=True),
    create(),
    metadata("created-2", "assigned", "refused", "validated", "bad name", ""),
    *(metadata("created-3", "missing", version=version) for version in range(4, 13)),
]

DELETING = [
    *(create(topic(name)) for name in ("a", "b", "c", "d", "e")),
    *(offsets(name, 1, -1) for name in ("a", "b", "c", "d", "e")),
    delete("missing"),
    delete("bad name", ""),
    delete("a", "a"),
    delete("a", "missing"),
    delete("a"),
    delete_states(("b", "b")),
    delete_states((None, None)),
    delete_states((None, "?")),
    delete_states(("missing", None), (None, "?"), ("b", None)),
    delete_states((None, "c"), (None, "c")),
    delete_states(("c", None), (None, "c")),
    delete_states((None, "c")),
    delete_states((None, "c")),
    delete(),
    delete_states(),
    *(delete(name, "missing", version=version) for name, version in (("d", 1), ("e", 4))),
    metadata("a", "b", "c", "d", "e"),
    create(topic("a", 2)),
    offsets("a", 2, -1),
]

CLUSTER = [
    *(cluster(version=version) for version in range(3)),
    cluster(2),
    cluster(3),
]
