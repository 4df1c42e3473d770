"""The builder of images: applies the changes of one revision to an image.

Only what a change touches is copied. A partition comes from two keys (state, assignment), which may arrive in different
revisions. It becomes part of its topic when the partition count in the name's record includes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from odradek.broker.metadata.client_quotas import apply_quota
from odradek.broker.metadata.image import BrokerImage, ImageChange, MetadataImage, PartitionImage, TopicImage
from odradek.broker.metadata.keys import DEFAULT_BROKER, TOPIC_ID_LENGTH, Keys
from odradek.broker.metadata.scram_users import ScramUsersBuilder
from odradek.broker.metadata.store.store import KV, Batch, Change, StoreError
from odradek.broker.metadata.stored_rules import StoredRule, decode_rule
from odradek.broker.metadata.values import (
    DeletedTopic,
    TopicRecord,
    decode_assignment,
    decode_cluster,
    decode_configs,
    decode_controller,
    decode_deleted_topic,
    decode_known,
    decode_levels,
    decode_partition_state,
    decode_registration,
    decode_topic,
)
from odradek.protocol.plural import pluralize
from odradek.protocol.uuids import uuid_from_text

Name = TypeVar("Name")

Uncovered = dict[bytes, dict[int, PartitionImage]]
"""Partitions beyond the count in a name's record, by topic id and number: being created, or interrupted."""

_UNASSIGNED = PartitionImage(leader=-1, leader_epoch=-1, replicas=[], isr={}, partition_epoch=-1)


class UnreadableValueError(StoreError):
    """A key has a value that this version cannot read; the message names the key."""


def load_image(keys: Keys, image: MetadataImage, kvs: Iterable[KV], revision: int) -> ImageChange:
    """Return the step from `image` to that of a whole store. Raises `UnreadableValueError`."""
    loaded = next_image(keys, MetadataImage(), Batch(revision, tuple(Change(kv.key, kv) for kv in kvs))).after
    return ImageChange(image, loaded, dict.fromkeys((*image.topics_by_id, *loaded.topics_by_id)))


def next_image(keys: Keys, image: MetadataImage, batch: Batch) -> ImageChange:
    """Return the step from `image` by the changes of `batch`. Raises `UnreadableValueError`."""
    if not batch.changes:
        return ImageChange(image, msgspec.structs.replace(image, revision=batch.revision), ())
    builder = _Builder(keys, image)
    for change in batch.changes:
        try:
            builder.apply(change)
        except (msgspec.MsgspecError, ValueError) as error:
            key = change.key.decode(errors="replace")
            raise UnreadableValueError(f"cannot read the metadata at {key}: {error}") from error
    return builder.build(batch.revision)


class _Builder:
    """Collects the changes of one revision (`apply`) and creates the next image from the last one (`build`)."""

    def __init__(self, keys: Keys, image: MetadataImage) -> None:
        self._keys = keys
        self._start = len(keys.prefix)
        self._image = image
        self._cluster_id = image.cluster_id
        self._controller = (image.controller_id, image.controller_epoch)
        self._registered = dict(image.registered)
        self._known = dict(image.known)
        self._broker_configs = image.broker_configs
        self._topic_configs = dict(image.topic_configs)
        self._group_configs = dict(image.group_configs)
        self._client_quotas = image.client_quotas
        self._features = (image.feature_levels, image.features_revision)
        self._scram_users: ScramUsersBuilder | None = None  # once one of its keys changes
        self._deleted: dict[bytes, DeletedTopic | None] = {}
        self._changed: dict[bytes, None] = {}  # the topics that the next image does not share with the last one
        self._parts: dict[bytes, dict[int, PartitionImage | None]] = {}
        self._names: dict[str, tuple[TopicRecord, int] | None] = {}  # with the revision
        self._configured: list[str] = []
        self._rules: dict[str, StoredRule | None] = {}

    def apply(self, change: Change) -> None:
        family = change.key[self._start :].split(b"/", 2)[1]
        if family == b"topics":
            self._apply_topic(change.key, change.kv)
        elif family == b"config":
            self._apply_config(change.key, change.kv)
        elif family == b"brokers":
            self._apply_broker(change.key, change.kv)
        elif family == b"quotas":
            if self._client_quotas is self._image.client_quotas:
                self._client_quotas = dict(self._client_quotas)
            apply_quota(self._keys, self._client_quotas, change.key, change.kv)
        elif change.key == self._keys.controller:
            kv = change.kv
            self._controller = (decode_controller(kv.value).broker, kv.create_revision) if kv else (-1, 0)
        elif change.key == self._keys.features:
            kv = change.kv
            self._features = (decode_levels(kv.value), kv.mod_revision) if kv else ({}, 0)
        elif change.key.startswith(self._keys.access_rules):
            self._apply_rule(change.key[len(self._keys.access_rules) :].decode(), change.kv)
        elif family == b"scram":
            self._scram_users = self._scram_users or ScramUsersBuilder(self._image.scram_users, self._keys)
            self._scram_users.apply(change.key, change.kv)
        elif change.key == self._keys.cluster and change.kv:
            self._cluster_id = decode_cluster(change.kv.value).id

    def _apply_rule(self, rule_id: str, kv: KV | None) -> None:
        self._rules[rule_id] = StoredRule(decode_rule(rule_id, kv.value), kv.mod_revision) if kv else None

    def _apply_broker(self, key: bytes, kv: KV | None) -> None:
        if key.startswith(self._keys.brokers_known):
            node_id = int(key[len(self._keys.brokers_known) :])
            if kv is None:
                self._known.pop(node_id, None)
            else:
                self._known[node_id] = decode_known(kv.value)
            return
        if not key.startswith(self._keys.broker_ids):
            return
        node_id = int(key[len(self._keys.broker_ids) :])
        if kv is None:
            self._registered.pop(node_id, None)
            return
        value = decode_registration(kv.value)
        self._registered[node_id] = BrokerImage(
            node_id=node_id,
            epoch=kv.create_revision,
            listeners=value.listeners,
            rack=value.rack,
            state=value.state,
            incarnation=value.incarnation,
            intact_since=value.intact_since or kv.create_revision,
            log_dirs=value.log_dirs,
            host=value.host,
            revision=kv.mod_revision,
            value=kv.value,
        )

    def _apply_config(self, key: bytes, kv: KV | None) -> None:
        if key.startswith(self._keys.topic_configs):
            name = key[len(self._keys.topic_configs) :].decode()
            self._configured.append(name)
            _configure(self._topic_configs, name, kv)
        elif key.startswith(self._keys.broker_configs):
            text = key[len(self._keys.broker_configs) :].decode()
            self._broker_configs = dict(self._broker_configs)
            _configure(self._broker_configs, None if text == DEFAULT_BROKER else int(text), kv)
        elif key.startswith(self._keys.group_configs):
            _configure(self._group_configs, key[len(self._keys.group_configs) :].decode(), kv)

    def _apply_topic(self, key: bytes, kv: KV | None) -> None:
        rest = key[len(self._keys.topics) :]
        if rest.startswith(b"names/"):
            self._names[rest[6:].decode()] = (decode_topic(kv.value), kv.mod_revision) if kv else None
            return
        if rest.startswith(b"deleted/"):
            self._deleted[uuid_from_text(rest[8:].decode())] = decode_deleted_topic(kv.value) if kv else None
            return
        parts = self._parts.setdefault(rest[:TOPIC_ID_LENGTH], {})
        index = int(rest[TOPIC_ID_LENGTH + 3 :])
        if kv is None:
            parts[index] = None
            return
        part = parts.get(index) or self._part(rest[:TOPIC_ID_LENGTH], index)
        is_state = rest[TOPIC_ID_LENGTH + 1] == ord("p")
        parts[index] = _with_state(part, kv) if is_state else _with_assignment(part, kv)

    def _part(self, topic_id: bytes, index: int) -> PartitionImage:
        """Return a partition of the image, whether it is part of its topic yet or not."""
        if not self._image.topics_by_id and not self._image.uncovered:
            return _UNASSIGNED
        uuid = uuid_from_text(topic_id.decode())
        topic = self._image.topics_by_id.get(uuid)
        if topic is not None and index < len(topic.partitions):
            return topic.partitions[index]
        return self._image.uncovered.get(uuid, {}).get(index, _UNASSIGNED)

    def build(self, revision: int) -> ImageChange:
        image = self._image
        topics, by_id, uncovered = image.topics, image.topics_by_id, image.uncovered
        if self._parts or self._names or self._configured:
            topics, by_id, uncovered = dict(topics), dict(by_id), dict(uncovered)
            self._update_partitions(topics, by_id, uncovered)
            self._update_names(topics, by_id, uncovered)
            self._update_configs(topics, by_id)
        after = MetadataImage(
            revision=revision,
            cluster_id=self._cluster_id,
            controller_id=self._controller[0],
            controller_epoch=self._controller[1],
            topics=topics,
            topics_by_id=by_id,
            brokers={node_id: broker for node_id, broker in sorted(self._registered.items()) if broker.is_alive},
            registered=self._registered,
            known=self._known,
            deleted=self._updated_deletions(),
            broker_configs=self._broker_configs,
            topic_configs=self._topic_configs,
            group_configs=self._group_configs,
            client_quotas=self._client_quotas,
            uncovered=uncovered,
            feature_levels=self._features[0],
            features_revision=self._features[1],
            rules=self._image.rules.changed(self._rules) if self._rules else self._image.rules,
            scram_users=image.scram_users if self._scram_users is None else self._scram_users.build(),
        )
        return ImageChange(image, after, self._changed)

    def _updated_deletions(self) -> dict[bytes, DeletedTopic]:
        if not self._deleted:
            return self._image.deleted
        deleted = dict(self._image.deleted)
        for topic_id, record in self._deleted.items():
            if record is None:
                deleted.pop(topic_id, None)
            else:
                deleted[topic_id] = record
        return deleted

    def _update_partitions(
        self,
        topics: dict[str, TopicImage],
        by_id: dict[bytes, TopicImage],
        uncovered: Uncovered,
    ) -> None:
        """Apply changed partitions; those that are not part of a topic yet go to `uncovered`."""
        for text, parts in self._parts.items():
            uuid = uuid_from_text(text.decode())
            topic = by_id.get(uuid)
            covered = len(topic.partitions) if topic is not None else 0
            _update_uncovered(uncovered, uuid, {index: part for index, part in parts.items() if index >= covered})
            if topic is not None:
                topic = msgspec.structs.replace(topic, partitions=_updated(topic.partitions, parts))
                topics[topic.name] = by_id[uuid] = topic
                self._changed[uuid] = None

    def _update_names(
        self,
        topics: dict[str, TopicImage],
        by_id: dict[bytes, TopicImage],
        uncovered: Uncovered,
    ) -> None:
        """Apply changed records of names: topics that are created, grown or deleted."""
        for name, stored in self._names.items():
            old = topics.pop(name, None)
            if old is not None:
                del by_id[old.topic_id]
                self._changed[old.topic_id] = None
            if stored is not None:
                topic = self._named(name, *stored, old, uncovered)
                topics[name] = by_id[topic.topic_id] = topic
                self._changed[topic.topic_id] = None

    def _update_configs(self, topics: dict[str, TopicImage], by_id: dict[bytes, TopicImage]) -> None:
        """Apply changed properties of topics whose names' records have not changed; `_named` handles the others."""
        for name in self._configured:
            topic = topics.get(name)
            if topic is not None and name not in self._names:
                configs, configs_revision = self._topic_configs.get(name, ({}, 0))
                topic = msgspec.structs.replace(topic, configs=configs, configs_revision=configs_revision)
                topics[name] = by_id[topic.topic_id] = topic
                self._changed[topic.topic_id] = None

    def _named(
        self, name: str, record: TopicRecord, revision: int, old: TopicImage | None, uncovered: Uncovered
    ) -> TopicImage:
        """Return the topic of a name's record, with the partitions that its count includes."""
        topic_id = uuid_from_text(record.id)
        partitions = old.partitions if old is not None and old.topic_id == topic_id else []
        partitions = partitions[: record.partitions]  # a copy; only a restored snapshot has fewer than before
        spare = dict(uncovered.pop(topic_id, {}))
        while len(partitions) < record.partitions and len(partitions) in spare:
            partitions.append(spare.pop(len(partitions)))
        if len(partitions) != record.partitions:
            raise StoreError(
                f"topic {name} has {pluralize(record.partitions, 'partition')}, but {len(partitions)} are stored"
            )
        if spare:
            uncovered[topic_id] = spare
        configs, configs_revision = self._topic_configs.get(name, ({}, 0))
        return TopicImage(name, topic_id, partitions, configs, revision, configs_revision)


def _configure(configs: dict[Name, tuple[dict[str, str], int]], name: Name, kv: KV | None) -> None:
    if kv is None:
        configs.pop(name, None)
    else:
        configs[name] = (decode_configs(kv.value), kv.mod_revision)


def _with_state(part: PartitionImage, kv: KV) -> PartitionImage:
    state = decode_partition_state(kv.value)
    return PartitionImage(
        state.leader,
        state.leader_epoch,
        part.replicas,
        state.isr,
        state.partition_epoch,
        state.elr,
        part.adding_replicas,
        part.removing_replicas,
        kv.mod_revision,
        kv.value,
        kv.create_revision,
    )


def _with_assignment(part: PartitionImage, kv: KV) -> PartitionImage:
    assignment = decode_assignment(kv.value)
    return PartitionImage(
        part.leader,
        part.leader_epoch,
        assignment.replicas,
        part.isr,
        part.partition_epoch,
        part.eligible_leader_replicas,
        assignment.adding,
        assignment.removing,
        part.state_revision,
        part.state_value,
        part.created_revision,
    )


def _updated(partitions: list[PartitionImage], parts: dict[int, PartitionImage | None]) -> list[PartitionImage]:
    """Return the partitions with their changes; one whose keys are deleted stays until its topic's name is."""
    updated = list(partitions)
    for index, part in parts.items():
        if index < len(updated) and part is not None:
            updated[index] = part
    return updated


def _update_uncovered(uncovered: Uncovered, topic_id: bytes, parts: dict[int, PartitionImage | None]) -> None:
    updated = {**uncovered.get(topic_id, {})}
    for index, part in parts.items():
        if part is None:
            updated.pop(index, None)
        else:
            updated[index] = part
    if updated:
        uncovered[topic_id] = updated
    else:
        uncovered.pop(topic_id, None)
