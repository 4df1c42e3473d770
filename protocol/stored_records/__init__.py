"""The messages in records that brokers write into internal topics and files.

```
key    record type int16 | the message `…Key`, version 0
value  version int16     | the message `…Value`; null deletes the record
```
The messages are declared as requests are (`odradek.protocol.schema`), and `odradek.protocol.codec` encodes them. The
record type determines the messages of key and value; the tables of types are those of Kafka's
`GroupCoordinatorRecordSerde` and `TransactionCoordinatorRecordSerde`.

| module | what |
|---|---|
| `record_types` | the record types of internal topics, with their messages |
| `offset_commit` | committed offsets |
| `group_metadata` | groups of the classic protocol |
| `consumer_group`, `share_group`, `streams_group` | groups of the newer protocols |
| `transaction_log` | the state of transactions |
| `consumer_protocol` | subscriptions and assignments in classic groups of consumers; no record type |
| `producer_snapshot` | the file with the producers of a partition; no record type |
| `raft_control` | control records of a Raft quorum; no record type |
| `cluster_metadata` | records of Kafka's metadata log |
"""
