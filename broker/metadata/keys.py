"""The keys in the metadata store. The values are in `values`.

```
/<namespace>/v1
  /cluster                        ClusterRecord
  /adopting                       exists until the log directories are adopted: see `adoption`
  /controller                     ControllerRecord, under its lease      controller epoch = create revision
  /brokers/ids/<node id>          BrokerRegistration, under its lease    broker epoch = create revision
  /brokers/known/<node id>        KnownBroker
  /topics/names/<name>            TopicRecord: the topic exists if this key does
  /topics/deleted/<topic id>      DeletedTopic: brokers that have logs of it delete them
  /topics/<topic id>/a/<%08d>     Assignment of one partition
  /topics/<topic id>/p/<%08d>     PartitionState of one partition
  /config/topic/<name>            {name: text}
  /config/broker/<node id>        {name: text}; `default` in place of a node id: all brokers
  /config/group/<group id>        {name: text}
  /quotas/…                       {kind: limit} of one quota entity: see `client_quotas`
  /pid/next                       ProducerIds
  /features                       {feature: level}, those that were changed
  /security/rules/<rule id>       one access rule: see `stored_rules`
  /scram/users/<name>             ScramUser: see `scram_users`
  /scram/secret                   ScramSecret
```

A topic id is written as Kafka writes it, 22 characters of base64url. A topic's name is a separate key, written last, so
that a topic of any size appears in one transaction. Keys under a topic id without a name belong to a creation that is
running, or was interrupted.
"""

from __future__ import annotations

from odradek.protocol.uuids import uuid_to_text

NAMESPACE = "odradek"
TOPIC_ID_LENGTH = 22
DEFAULT_BROKER = "default"


class Keys:
    """The keys of one cluster's namespace."""

    def __init__(self, namespace: str = NAMESPACE) -> None:
        self.prefix = f"/{namespace}/v1".encode()
        self.cluster = self.prefix + b"/cluster"
        self.adopting = self.prefix + b"/adopting"
        self.controller = self.prefix + b"/controller"
        self.broker_ids = self.prefix + b"/brokers/ids/"
        self.brokers_known = self.prefix + b"/brokers/known/"
        self.topic_names = self.prefix + b"/topics/names/"
        self.topics_deleted = self.prefix + b"/topics/deleted/"
        self.topics = self.prefix + b"/topics/"
        self.topic_configs = self.prefix + b"/config/topic/"
        self.broker_configs = self.prefix + b"/config/broker/"
        self.group_configs = self.prefix + b"/config/group/"
        self.client_quotas = self.prefix + b"/quotas/"
        self.next_producer_id = self.prefix + b"/pid/next"
        self.features = self.prefix + b"/features"
        self.access_rules = self.prefix + b"/security/rules/"
        self.scram_users = self.prefix + b"/scram/users/"
        self.scram_secret = self.prefix + b"/scram/secret"

    def broker_id(self, node_id: int) -> bytes:
        return b"%b%d" % (self.broker_ids, node_id)

    def broker_known(self, node_id: int) -> bytes:
        return b"%b%d" % (self.brokers_known, node_id)

    def topic_name(self, name: str) -> bytes:
        return self.topic_names + name.encode()

    def topic(self, topic_id: bytes) -> bytes:
        """Return the prefix of everything under a topic id."""
        return b"%b%b/" % (self.topics, uuid_to_text(topic_id).encode())

    def topic_deleted(self, topic_id: bytes) -> bytes:
        return self.topics_deleted + uuid_to_text(topic_id).encode()

    def assignment(self, topic_id: bytes, partition: int) -> bytes:
        return b"%ba/%08d" % (self.topic(topic_id), partition)

    def partition_state(self, topic_id: bytes, partition: int) -> bytes:
        return b"%bp/%08d" % (self.topic(topic_id), partition)

    def topic_config(self, name: str) -> bytes:
        return self.topic_configs + name.encode()

    def broker_config(self, node_id: int | None) -> bytes:
        """Return the key of a broker's properties, or of those of all brokers."""
        return self.broker_configs + (DEFAULT_BROKER if node_id is None else str(node_id)).encode()

    def scram_user(self, name: str) -> bytes:
        return self.scram_users + name.encode()

    def group_config(self, group_id: str) -> bytes:
        return self.group_configs + group_id.encode()

    def access_rule(self, rule_id: str) -> bytes:
        return self.access_rules + rule_id.encode()
