"""The idempotent producers of a log: their state, its snapshots, and how it is rebuilt (KIP-98).

| module | what |
|---|---|
| `producer_state` | the producers of one partition, the checks of their batches, their transactions |
| `producer_snapshots` | the snapshot files: their layout; when they are written, loaded and removed |
| `partition_producers` | the state kept in step with one log, and rebuilt from snapshots and the log |
"""
