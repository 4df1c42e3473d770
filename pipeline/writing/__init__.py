"""`format("broker")` as a sink: rows as records of topics.

| module | what |
|---|---|
| `batches` | the rows that a task writes become record batches: encoded as they come, and joined when a batch of |
| `delivery` | send encoded batches to the leaders of their partitions, each once and in order: what a task writes |
| `partitioning` | which partition each record of an Arrow batch goes to: as Kafka's producer chooses, for all |
| `sink` | `write` and `writeStream` of `format("broker")`: rows become records of topics |
"""
