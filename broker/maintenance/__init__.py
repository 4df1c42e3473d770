"""Periodic work on the logs: retention, compaction, flushes and checkpoints.

| module | what |
|---|---|
| `cleaner_threads` | compaction while the broker runs: each of log.cleaner.threads compacts one log after the |
| `retention_check` | a round of retention: expired segments are deleted from the logs of this broker |
| `periodic_tasks` | what a broker does for its logs at intervals, without being asked |
"""
