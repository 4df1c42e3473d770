"""Records that brokers write for themselves into internal topics and files, one module for what belongs together.

```
key    record type int16 | the message `…Key`, version 0
value  version int16     | the message `…Value`; null takes the record back
```
The messages are declared as those of requests are (`odradek.protocol.schema`), and are encoded by
`odradek.protocol.codec`. The record type alone says which two messages a record is; the tables are those of Kafka's
`GroupCoordinatorRecordSerde` and
`TransactionCoordinatorRecordSerde`. `raft_control`, `producer_snapshot` and `consumer_protocol` hold what has no type.
"""
