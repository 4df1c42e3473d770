"""Periodic work on the logs of a running broker: retention, compaction, flushes, checkpoints.

| module | what |
|---|---|
| `periodic_tasks` | starts all of it, and runs the short tasks: begin here |
| `retention_check` | one round of retention: deletes expired segments |
| `producer_expiration` | removes idempotent producers that have not written for long |
| `cleaner_threads` | runs compaction: log.cleaner.threads loops |

The decisions are below, in the logs: `storage.retention` and `storage.cleanable`.
"""
