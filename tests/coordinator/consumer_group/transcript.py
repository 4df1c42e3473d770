"""A consumer group driven by a text: lines at the margin are events, indented ones their effects.

```
topics a=3 b=2                         the cluster's topics from now on
settings max_size=2                    of the group, from now on
time 1000                              the clock goes on, timers that are due expire
m1 join a owns= …                      a heartbeat with epoch 0 and all that a first one must have
m1 beat 2 owns=a:0,1                   a heartbeat in epoch 2; what is left out is left as it was
m1 leave                               epoch -1; `away` is -2
resolve                                the requested work is done, and its result submitted
describe
```
Options: `topics=a,b`, `regex=…`, `instance=…`, `assignor=…`, `timeout=…` (of the rebalance), `owns=a:0,1;b:0`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat
from odradek.broker.coordinator.consumer_group.group import ConsumerGroup
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.runtime.events import Effects, PendingReply, TimerExpired, TimerKey
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from odradek.protocol.stored_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

_STATES = {0: "stable", 1: "unrevoked", 2: "unreleased"}


class Group:
    """A group with a cluster of topics and a clock. Records are replayed at once."""

    def __init__(self) -> None:
        self.settings = ConsumerGroupSettings()
        self.image = MetadataImage()
        self.now_ms = 1_000_000
        self.timers: dict[TimerKey, int] = {}
        self.work: Any = None
        self.log: list[CoordinatorRecord] = []
        self.group = self.new()

    def new(self) -> ConsumerGroup:
        return ConsumerGroup("g", lambda: self.settings, lambda: self.image, lambda *_, **__: None)

    def set_topics(self, counts: dict[str, int]) -> None:
        before = self.image.topics
        topics = {name: before.get(name) or TopicImage(name, name.encode().ljust(16, b"."), []) for name in counts}
        partition = PartitionImage(1, 0, [1], {1: 1}, 0)
        topics = {
            name: msgspec.structs.replace(topic, partitions=[partition] * counts[name])
            for name, topic in topics.items()
        }
        by_id = {topic.topic_id: topic for topic in topics.values()}
        self.image = MetadataImage(revision=self.image.revision + 1, topics=topics, topics_by_id=by_id)
        self.group.metadata_changed(topics.keys(), bool(topics.keys() - before.keys()), self.now_ms)

    def handle(self, event: Any) -> Effects:
        """Handle the event and carry out its effects. Raises KafkaError, as the group does."""
        effects = self.group.handle(event, self.now_ms)
        self.take(effects)
        return effects

    def take(self, effects: Effects) -> None:
        for record in effects.records:
            self.log.append(record)
            self.group.replay(record)
        for key, delay_ms in effects.timers.items():
            if delay_ms is None:
                self.timers.pop(key, None)
            else:
                self.timers[key] = self.now_ms + delay_ms
        self.work = effects.work or self.work

    def pass_time(self, delay_ms: int) -> Iterator[tuple[TimerKey, Effects]]:
        """Advance the time, and yield each timer that expires with its effects, in the order of time."""
        end_ms = self.now_ms + delay_ms
        while due := [(when, key) for key, when in self.timers.items() if when <= end_ms]:
            self.now_ms, key = min(due)
            del self.timers[key]
            yield key, self.handle(TimerExpired(key))
        self.now_ms = end_ms

    def heartbeat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """Return the response. Raises KafkaError."""
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)
        effects = self.handle(ConsumerHeartbeat(PendingReply(), request, "new-id", "client", "/127.0.0.1"))
        ((_, response),) = effects.replies
        self.last = effects
        return response

    def topic_id(self, name: str) -> bytes:
        return name.encode().ljust(16, b".")


def run(script: str) -> str:
    """Return the script with the effects of its events as they are."""
    group, lines = Group(), []
    for line in script.splitlines():
        if line.startswith(" "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"    {outcome}" for outcome in _perform(group, line.split())]
    return "\n".join(lines) + "\n"


def _perform(group: Group, words: list[str]) -> list[str]:
    match words:
        case ["topics", *counts]:
            group.set_topics({name: int(count) for name, count in (each.split("=") for each in counts)})
            return []
        case ["settings", *values]:
            changes = {name: int(value) for name, value in (each.split("=") for each in values)}
            group.settings = msgspec.structs.replace(group.settings, **changes)
            return []
        case ["time", delay]:
            return [
                line
                for key, effects in group.pass_time(int(delay))
                for line in [f"{'/'.join(key)} expired", *_shown(effects)]
            ]
        case ["resolve"]:
            return _shown(group.handle(group.work()))
        case ["reload"]:
            reloaded = group.new()
            for record in group.log:
                reloaded.replay(record)
            group.group = reloaded
            effects = reloaded.loaded(group.now_ms)
            group.take(effects)
            return _shown(effects)
        case ["describe"]:
            return _described(group)
        case [member_id, verb, *options]:
            return _heartbeat(group, member_id, verb, options)
    raise ValueError(" ".join(words))


def _heartbeat(group: Group, member_id: str, verb: str, words: list[str]) -> list[str]:
    epochs = {"join": 0, "leave": -1, "away": -2}
    epoch = epochs[verb] if verb in epochs else int(words.pop(0))
    fields: dict[str, Any] = {}
    if verb == "join":
        fields = {"rebalance_timeout_ms": 10_000, "topic_partitions": []}
    for word in words:
        name, value = word.split("=", 1)
        if name == "topics":
            fields["subscribed_topic_names"] = value.split(",") if value else []
        elif name == "owns":
            fields["topic_partitions"] = [
                TopicPartitions(group.topic_id(topic), [int(number) for number in numbers.split(",")])
                for topic, numbers in (each.split(":") for each in value.split(";") if each)
            ]
        else:
            field = {
                "regex": "subscribed_topic_regex",
                "instance": "instance_id",
                "assignor": "server_assignor",
                "timeout": "rebalance_timeout_ms",
            }[name]
            fields[field] = int(value) if name == "timeout" else value
    try:
        response = group.heartbeat(member_id, epoch, **fields)
    except KafkaError as error:
        return [f"{error.code.name}: {error.detail}"]
    answer = f"epoch {response.member_epoch}"
    if response.assignment is not None:
        owned = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
        answer += f", assignment {_partitions(owned)}"
    return [answer, *_shown(group.last)]


def _shown(effects: Effects) -> list[str]:
    lines = [f"record {_record(record)}" for record in effects.records]
    for (kind, member_id), delay_ms in sorted(effects.timers.items()):
        if (kind, delay_ms) != ("session", 45_000) and delay_ms is not None:
            lines.append(f"timer {kind}/{member_id} {delay_ms}")
    if effects.work is not None:
        lines.append("work")
    return lines


def _record(record: CoordinatorRecord) -> str:
    key: Any = record.key
    value: Any = record.value
    words = {
        ConsumerGroupMetadataKey: lambda: "group",
        ConsumerGroupMemberMetadataKey: lambda: f"member {key.member_id}",
        ConsumerGroupTargetAssignmentMetadataKey: lambda: "target",
        ConsumerGroupTargetAssignmentMemberKey: lambda: f"target of {key.member_id}",
        ConsumerGroupCurrentMemberAssignmentKey: lambda: f"assignment of {key.member_id}",
        ConsumerGroupRegularExpressionKey: lambda: f"expression {key.regular_expression}",
    }
    name = words[type(key)]()
    return f"{name}: {'deleted' if value is None else _value(value)}"


def _value(value: Any) -> str:
    match type(value).__name__:
        case "ConsumerGroupMetadataValue":
            return f"epoch {value.epoch}"
        case "ConsumerGroupMemberMetadataValue":
            return f"topics {value.subscribed_topic_names}, expression {value.subscribed_topic_regex!r}"
        case "ConsumerGroupTargetAssignmentMetadataValue":
            return f"epoch {value.assignment_epoch}"
        case "ConsumerGroupTargetAssignmentMemberValue":
            return _partitions({topic.topic_id: topic.partitions for topic in value.topic_partitions})
        case "ConsumerGroupRegularExpressionValue":
            return f"{value.topics}"
    assigned = {
        topic.topic_id: [
            f"{number}@{epoch}" for number, epoch in zip(topic.partitions, topic.assignment_epochs, strict=True)
        ]
        for topic in value.assigned_partitions
    }
    revoked = {topic.topic_id: topic.partitions for topic in value.partitions_pending_revocation}
    pending = f", revoking {_partitions(revoked)}" if revoked else ""
    state = _STATES[value.state]
    return f"epoch {value.member_epoch} after {value.previous_member_epoch}, {state}, {_partitions(assigned)}{pending}"


def _partitions(partitions: dict[bytes, list[Any]]) -> str:
    return (
        " ".join(
            f"{topic_id.rstrip(b'.').decode()}[{','.join(map(str, numbers))}]"
            for topic_id, numbers in partitions.items()
        )
        or "nothing"
    )


def _described(group: Group) -> list[str]:
    described = group.group.described()
    epochs = f"epoch {described.group_epoch}, target epoch {described.assignment_epoch}"
    lines = [f"{described.group_state}, {epochs}, {described.assignor_name}"]
    for member in described.members:
        has, target = (
            " ".join(f"{topic.topic_name}{topic.partitions}" for topic in assignment.topic_partitions) or "nothing"
            for assignment in (member.assignment, member.target_assignment)
        )
        lines.append(f"{member.member_id} in {member.member_epoch} has {has}, target {target}")
    return lines
