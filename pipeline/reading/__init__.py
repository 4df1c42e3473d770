"""`format("broker")` as a source: topics as tables and streams.

| module | what |
|---|---|
| `bounds` | where reading starts or ends, as the options say it, before any broker was asked |
| `data_loss` | `failOnDataLoss`, as the connector has it: what becomes of a query whose records have gone |
| `offsets` | what the driver asks the brokers before anything is read: which partitions there are, and where they |
| `options` | the options of `format("broker")`: those of Spark's connector for Kafka, read once, refused by name |
| `partition_reader` | what a task reads: one range of one partition, as Arrow batches, with what to do where |
| `ranges` | ranges of offsets, and how they are cut for Spark's tasks |
| `source` | `format("broker")`: topics of Apache Kafka, or of this broker, as tables and streams, without a jar |
| `stream` | `readStream` of `format("broker")`: from one trigger to the next, which offsets belong to it |
| `wire` | fetch from the leader of one partition, a request ahead of the reader: what an executor's task reads with |
"""
