"""Log directories that no broker serves: listed, read while a broker may be writing them, or opened in memory.

| module | what |
|---|---|
| `listing` | the partitions of a directory and the files of each |
| `live_log` | the logs of a directory that a broker may be writing: segments, start, end |
| `log_end` | the last whole batch of a segment |
| `batch_search` | the next batch behind damage |
| `missing_offsets` | offsets that a log lacks, and the evidence that explains them |
| `segment_files` | the identity of a segment's file, the used part of its indexes |
| `directory_lock` | whether a broker holds the lock of a directory |
| `stored_log_dir`, `stored_partition` | a directory opened as a broker opens it, repaired in memory; its records |
| `committed_offsets` | the offsets of groups in `__consumer_offsets` |
| `kraft_topics` | the topics and their properties in `__cluster_metadata` |

Users: `inspect`, `verify` and `dump-log` (`broker.inspection`), the pipeline's `klog`, and the adoption of directories
that Kafka has written (`broker.metadata.adoption`). All walk over batches with `storage.batch_scan`, but for `verify`,
which must go on behind damage, and `dump-log`, whose output for damaged files is Kafka's.
"""
