"""Partitions and their replicas: leadership, high watermark, fetch sessions.

| module | what |
|---|---|
| `partitions`, `partition` | the registry; one partition: who leads it, what of its log consumers may read |
| `steps` | what a change of the image does to partitions, in order |
| `isr`, `offset_lookup` | what follows from the in-sync replicas; the offset of a time |
| `refused_batches` | which series a refused batch moves |
| `log_appender` | the order of the appends to one log |
| `disk_threads`, `writer_thread` | the threads that keep disk work off the event loop |
| `fetch_sessions`, `fetch_session` | incremental fetch sessions (KIP-227) |
"""
