"""The idempotent producers of a log: their state, its snapshots, and how it is rebuilt (KIP-98).

| module | what |
|---|---|
| `producer_state` | the producers of one partition, the checks of their batches, their transactions |
| `verification_state` | the proof that a transaction's coordinator has the partition in it |
| `batch_replay` | batches of the log, added to that state |
| `producer_snapshots` | the snapshot files: their layout; when they are written, loaded and removed |
| `partition_producers` | the state kept in step with one log, and rebuilt from snapshots and the log |
"""
