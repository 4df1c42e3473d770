"""Log directories that no broker serves: copies, backups, those of Apache Kafka.

| module | what |
|---|---|
| `committed_offsets` | the offsets that groups have committed, as `__consumer_offsets` holds them |
| `kraft_topics` | the topics that Apache Kafka's own controller had, with their properties: out of |
| `stored_log_dir` | a log directory as somebody finds it who is no broker: a copy of one, a backup, one that |
| `stored_partition` | one partition of a log directory that is only looked at: its offsets, segments, records |
"""
