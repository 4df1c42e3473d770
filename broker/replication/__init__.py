"""The partitions on this broker: leadership, high watermark, appends in order, fetch sessions.

| module | what |
|---|---|
| `partitions`, `partition` | the registry; one partition: leader, high watermark, checks before reads and writes |
| `partition_changes` | the changes that a new metadata image makes to partitions, in order |
| `isr`, `offset_lookup` | decisions about in-sync replicas; the offset for a timestamp |
| `log_appender` | the order of the appends to one log |
| `refused_batches` | the metrics that a refused batch moves |
| `disk_threads`, `writer_thread` | the threads that keep disk work off the event loop |
| `fetch_sessions`, `fetch_session` | incremental fetch sessions (KIP-227) |
"""
