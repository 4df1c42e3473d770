"""The tables of properties: a class for each area, a row for each property.

| module | what |
|---|---|
| `identity` | the broker's identity, its log directories, the intervals of the tasks on them |
| `cluster` | the metadata store of several brokers |
| `workers` | several processes on one machine |
| `network` | listeners, connections, requests |
| `tls`, `sasl`, `access` | certificates; authentication; access rules |
| `topics` | creation and deletion of topics, replicas, leaders |
| `log` | retention, compaction, segments, records |
| `groups`, `consumer_groups` | group coordination and offsets; groups of the consumer protocol (KIP-848) |
| `transactions` | transactions: time limits, the topic of their state, verification |
| `quotas` | the windows of quotas, limits of slow and fast connections |
| `observability` | metrics and log lines; not Kafka's |
| `ignored_table` | Kafka's properties without effect here, with the reasons |
"""
