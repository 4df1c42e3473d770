"""The tables of properties: one class for each area, one row for each property.

| module | what |
|---|---|
| `consumer_groups` | properties of groups of the consumer protocol (KIP-848) |
| `groups` | properties of group coordination: how groups rebalance, and how their offsets are kept |
| `identity` | properties that say who this broker is and where it keeps its data |
| `ignored_table` | the table of Kafka's broker properties that have no effect here, by the reason |
| `log` | properties of logs. Nearly all are broker-wide defaults of a topic property, named in `topic` |
| `network` | properties of sockets, connections and requests |
| `observability` | properties of metrics and of the broker's own log lines. None of them is Kafka's |
| `topics` | properties of topics in general: what a new one is like, and how its replicas are kept |
"""
