"""The producers of a log: their state, snapshots and recovery (KIP-98).

| module | what |
|---|---|
| `partition_producers` | the producers of one log, kept in step with it: checked before an append, noted after |
| `producer_entry` | what one partition knows of one idempotent producer: its epoch, and the last five batches |
| `producer_history` | the batches that a snapshot leaves out: it keeps the last one of each producer, a client |
| `producer_replay` | learning a partition's producers from its log: what snapshots do not cover is read batch by |
| `producer_snapshot` | the snapshot of a partition's producers (`.snapshot`), so that a start need not read the |
| `producer_snapshots` | the snapshot files of one partition: when they are written, which are used, which are removed |
| `producer_state` | who writes to a partition: idempotent producers and their transactions (KIP-98), as Kafka's |
"""
