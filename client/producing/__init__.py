"""The parts of a producer: batches, their partitions, requests and results.

| module | what |
|---|---|
| `accumulator` | where records wait to be sent: a queue of batches for each partition, under one bound on their |
| `delivery` | what becomes of a batch whose request is over: settled, sent again, numbered again, split, or failed |
| `partition_queue` | the batches of one partition on their way to its leader, in the order in which their records |
| `partitioner` | which partition a record goes to that names none: the `partitioner` of the producer says |
| `producer_ids` | the producer id of an idempotent producer (KIP-98): asked of any broker, for nobody else to have |
| `record_arguments` | find the argument of `Producer.send` that no record can be made of |
| `sender` | from ready batches to requests, and from answers to their batches: what a producer does without being |
"""
