"""The producer: batches of records, their partitions, requests and results.

```
Producer.send ─► RecordAccumulator ─► Sender ─► broker
                 (PartitionQueue)       ▲          │ response
                        ▲               └─ Delivery ◄┘  completes, retries, splits or fails the batch
                        └─ a batch that is retried
```

| module | what |
|---|---|
| `producer` | `Producer`: what the user calls |
| `record_accumulator` | the records that wait for a request, and the bound on their memory (`buffer_memory`) |
| `partition_queue` | the batches of one partition in the order of their records; sequences of an idempotent producer |
| `partitioner` | the partition of a record that names none |
| `sender` | requests to the leaders of partitions, and their responses |
| `delivery` | the result of a batch after its request: complete, retry, renumber, split or fail |
| `producer_id` | the producer id of an idempotent producer (InitProducerId) |
| `record_arguments` | the error for an argument of `send` that has a wrong type |
"""
